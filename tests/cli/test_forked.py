"""What a forked run shows is what an interpreter of its own shows."""

import pytest

from tests.support.program import model_flags, run_musepi
from tests.support.server import ModelServer, openai_reply


@pytest.mark.parametrize(
    ("arguments", "stdin"),
    [
        (["--nonsense"], ""),
        (["-p"], "what is é?\n"),
        (["--mode", "rpc"], '{"type":"nothing"}\n{broken\n'),
    ],
    ids=["usage", "print", "rpc"],
)
def test_forked_run_ends_as_a_fresh_one(arguments, stdin, tmp_path):
    with ModelServer() as server:
        server.fallback = openai_reply(text="an é")
        words = [*arguments, *model_flags(server.base_url)]
        forked, fresh = (run_musepi(*words, cwd=tmp_path, stdin=stdin, fresh=way) for way in (False, True))
    assert (forked.returncode, forked.stdout, forked.stderr) == (fresh.returncode, fresh.stdout, fresh.stderr)


def test_what_is_left_to_the_end_of_an_interpreter_is_done_in_a_forked_run(tmp_path):
    late = "import atexit, pathlib\n\ndef activate(api):\n    atexit.register(pathlib.Path('over').touch)\n"
    (tmp_path / "late.py").write_text(late)
    with ModelServer(openai_reply(text="ok")) as server:
        run = run_musepi("-p", "hi", "-e", "late.py", *model_flags(server.base_url), cwd=tmp_path)
    assert (run.returncode, run.stdout, run.stderr) == (0, "ok\n", "")
    assert (tmp_path / "over").exists()
