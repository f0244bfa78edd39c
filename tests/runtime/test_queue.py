import pytest
from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.runtime.queue import MAX_CHARS, MAX_MESSAGES, MessageQueue, QueuedMessage


def queue(*, singly: bool = True, changes: list[int] | None = None) -> MessageQueue:
    def changed() -> None:
        if changes is not None:
            changes.append(len(made))

    made = MessageQueue(lambda _: singly, changed)
    return made


def texts(messages: tuple[QueuedMessage, ...]) -> list[str]:
    return [message.text for message in messages]


def test_steering_goes_before_follow_ups_when_a_turn_ends():
    waiting = queue()
    waiting.push(QueuedMessage("later"), "follow_up")
    waiting.push(QueuedMessage("now"), "steer")
    assert texts(waiting.take_next()) == ["now"]
    assert texts(waiting.take_next()) == ["later"]
    assert waiting.take_next() == ()


def test_follow_ups_are_left_alone_when_steering_is_taken():
    waiting = queue()
    waiting.push(QueuedMessage("later"), "follow_up")
    assert waiting.take_steering() == ()
    assert waiting.texts("follow_up") == ("later",)


def test_all_messages_of_a_kind_come_together_in_mode_all():
    waiting = queue(singly=False)
    for text in ("one", "two"):
        waiting.push(QueuedMessage(text), "steer")
    assert texts(waiting.take_steering()) == ["one", "two"]


def test_messages_put_back_come_first_again():
    waiting = queue()
    waiting.push(QueuedMessage("first"), "steer")
    waiting.push(QueuedMessage("second"), "steer")
    waiting.put_back(waiting.take_next())
    assert waiting.texts("steer") == ("first", "second")


def test_every_change_is_told():
    changes: list[int] = []
    waiting = queue(changes=changes)
    waiting.push(QueuedMessage("one"), "steer")
    waiting.take_next()
    waiting.take_next()
    assert changes == [1, 0]


@pytest.mark.parametrize(
    ("count", "size_chars"),
    [
        pytest.param(MAX_MESSAGES, 1, id="too many"),
        pytest.param(1, MAX_CHARS, id="too large"),
    ],
)
def test_a_message_is_refused_when_the_queue_is_full(count, size_chars):
    waiting = queue()
    for _ in range(count):
        waiting.push(QueuedMessage("x" * size_chars), "steer")
    assert waiting.refusal(QueuedMessage("one more")) is not None
    assert queue().refusal(QueuedMessage("one more")) is None


@given(st.lists(st.tuples(st.sampled_from(["steer", "follow_up", "take", "back"]), st.integers())))
def test_no_message_is_lost_or_doubled(steps):
    waiting = queue()
    pushed: list[str] = []
    delivered: list[str] = []
    for number, (step, _) in enumerate(steps):
        if step == "take":
            delivered += texts(waiting.take_next())
        elif step == "back":
            waiting.put_back(waiting.take_next())
        else:
            pushed.append(str(number))
            waiting.push(QueuedMessage(str(number)), step)
    delivered += texts(waiting.take_all())
    assert sorted(delivered) == sorted(pushed)
