import json
import os
from pathlib import Path

import pytest

from musepi_tui.base.errors import SessionError, UsageError
from musepi_tui.cli.choosing import Place, choose_session
from musepi_tui.cli.options import parse_options
from musepi_tui.runtime.options import SessionChoice
from musepi_tui.settings.load import load_settings
from musepi_tui.storage.loading import load_session
from musepi_tui.storage.paths import find_paths, session_folder
from tests.support.imports import answered, said, text
from tests.support.lines import chain, header_line, write_lines

ID = "0198c0de-1111-7000-8000-000000000000"


class FakePerson:
    """Answers questions and remembers them."""

    def __init__(self, answer: bool | None = None) -> None:
        self.asked: list[str] = []
        self._answer = answer

    def __call__(self, question: str, *, is_yes_usual: bool) -> bool:
        self.asked.append(question)
        return is_yes_usual if self._answer is None else self._answer


@pytest.fixture
def place(musepi_home: Path, tmp_path: Path) -> Place:
    paths = find_paths({"MUSEPI_HOME": str(musepi_home), "HOME": str(tmp_path)})
    return Place(paths, folder(tmp_path / "here"), load_settings(paths.config, None))


def folder(path: Path) -> Path:
    path.mkdir(parents=True)
    return path


def stored(place: Place, cwd: Path) -> Path:
    made = session_folder(place.paths, cwd)
    made.mkdir(parents=True, exist_ok=True)
    return write_lines(made / f"2026_{ID}.jsonl", header_line(id=ID, cwd=str(cwd)), *chain("a", "b"))


def choose(place: Place, *argv: str, person: FakePerson | None = None) -> SessionChoice:
    return choose_session(parse_options(argv), place, {}, person)


def test_without_a_flag_the_session_is_new(place):
    assert choose(place) == SessionChoice()


def test_no_session_is_kept_in_memory(place):
    assert choose(place, "--no-session") == SessionChoice("memory")


@pytest.mark.parametrize("kind", ["new", "open"])
def test_session_names_exactly_that_file(kind, place, tmp_path):
    path = tmp_path / "s.jsonl"
    if kind == "open":
        write_lines(path, header_line())
    assert choose(place, "--session", str(path)) == SessionChoice(kind, path)


def test_session_that_is_a_pipe_is_opened_and_so_refused(place, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert choose(place, "--session", str(tmp_path / "pipe")).kind == "open"


def test_resume_of_a_session_in_another_format_tells_what_became_of_it(place, tmp_path, capsys):
    folder = tmp_path / ".claude" / "projects" / "-p"
    folder.mkdir(parents=True)
    lines = [
        said("u", None, "one", cwd=str(place.cwd), sessionId=ID),
        answered("a", "u", text("two"), "m", cwd=str(place.cwd), sessionId=ID),
    ]
    path = write_lines(folder / f"{ID}.jsonl", *lines)
    choice = choose(place, "-r", ID)
    assert choice.path is not None
    told = capsys.readouterr().err
    assert f"{path} was copied into a new session, {choice.path}; the original stays as it is" in told
    assert f"{path}: carried over 1 assistant, 1 user" in told


def test_continue_takes_the_newest_of_this_folder(place):
    path = stored(place, place.cwd)
    assert choose(place, "-c") == SessionChoice("open", path)


def test_continue_without_any_is_a_new_one(place):
    assert choose(place, "-c") == SessionChoice()


@pytest.mark.parametrize("reference", ["id", "path"])
def test_fork_makes_a_copy_that_belongs_here(reference, place, tmp_path):
    path = stored(place, folder(tmp_path / "there"))
    before = path.read_bytes()
    choice = choose(place, "--fork", ID[:12] if reference == "id" else str(path))
    assert choice.kind == "open"
    assert choice.path is not None
    header = load_session(choice.path).header
    assert (header.cwd, header.parent_session) == (str(place.cwd), str(path))
    assert choice.path.parent == session_folder(place.paths, place.cwd)
    assert path.read_bytes() == before


def test_resume_of_this_folder_asks_nothing(place):
    path = stored(place, place.cwd)
    assert choose(place, "-r", ID[:10], person=FakePerson()) == SessionChoice("open", path)


def test_a_session_whose_folder_is_gone_is_moved_here(place, tmp_path):
    gone = folder(tmp_path / "gone")
    path = stored(place, gone)
    gone.rmdir()
    person = FakePerson()
    choice = choose(place, "-r", ID, person=person)
    assert choice == SessionChoice("open", session_folder(place.paths, place.cwd) / path.name)
    assert not path.exists()
    assert person.asked == [
        f"The folder of session {ID}, {gone}, does not exist any more. Move the session to {place.cwd}?"
    ]


def test_a_session_of_another_folder_is_forked_only_when_that_is_wanted(place, tmp_path):
    there = folder(tmp_path / "there")
    path = stored(place, there)
    with pytest.raises(SessionError, match="Nothing was opened"):
        choose(place, "-r", ID, person=FakePerson())
    choice = choose(place, "-r", ID, person=FakePerson(True))
    assert choice.path not in (path, None)
    assert json.loads(Path(str(choice.path)).read_bytes().split(b"\n")[0])["cwd"] == str(place.cwd)


@pytest.mark.parametrize("exists", [True, False])
def test_with_nobody_to_ask_the_remedy_is_named(exists, place, tmp_path):
    there = folder(tmp_path / "there")
    stored(place, there)
    if not exists:
        there.rmdir()
    with pytest.raises(SessionError, match=f"--fork {ID}"):
        choose(place, "-r", ID)


def test_a_path_is_opened_where_it_belongs(place, tmp_path):
    path = stored(place, folder(tmp_path / "there"))
    assert choose(place, "-r", str(path)) == SessionChoice("open", path)


def test_an_unknown_session_is_named(place):
    with pytest.raises(SessionError, match='Session "nope" not found'):
        choose(place, "--fork", "nope")


@pytest.mark.parametrize("mode", [("-p",), ("--mode", "json"), ("--mode", "rpc")])
def test_the_picker_needs_the_screen(mode, place):
    with pytest.raises(UsageError, match="needs the screen"):
        choose(place, *mode, "--resume")


@pytest.mark.parametrize(
    "argv",
    [("--fork", "a", "-c"), ("--no-session", "--session", "x"), ("--fork", "a", "--no-session"), ("-n", " ")],
)
def test_contradictions_are_usage_errors(argv):
    with pytest.raises(UsageError):
        parse_options(argv)
