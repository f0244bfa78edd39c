import re

from tests.support.checkout import PACKAGE, ROOT, own_files, sources

TOP_LEVEL = {
    ".ci",
    ".gitignore",
    ".pre-commit-config.yaml",
    "CHANGELOG.md",
    "LICENSE",
    "Makefile",
    "README.md",
    "docs",
    "musepi_tui",
    "prompts",
    "pyproject.toml",
    "requirements.lock",
    "tests",
    "themes",
}


def test_top_level_is_what_the_architecture_page_says():
    assert {path.relative_to(ROOT).parts[0] for path in own_files()} == TOP_LEVEL


def test_no_file_names_a_machine():
    places = [f"/{name}/" for name in ("work", "root", "tmp/design")] + [f"/{'home'}/runner"]
    for path in own_files():
        text = path.read_bytes().decode("utf-8", "replace")
        assert not [place for place in places if re.search(rf"(?<![\w.]){place}", text)], path


def test_the_lock_has_hashes_and_no_addresses():
    text = (ROOT / "requirements.lock").read_text()
    pins = re.findall(r"^([\w.\-]+)==", text, re.MULTILINE)
    assert "://" not in text
    assert "--index" not in text
    assert {"textual", "pydantic", "httpx", "tiktoken", "hatchling", "pytest"} <= set(pins)
    blocks = re.split(r"^(?=[\w.\-]+==)", text, flags=re.MULTILINE)[1:]
    assert len(blocks) == len(pins)
    assert all("--hash=sha256:" in block for block in blocks)


def test_no_work_is_left_open_in_the_code():
    words = ["TO" + "DO", "FIX" + "ME", "not " + "implemented", "place" + "holder text"]
    for path in sources():
        text = path.read_text(encoding="utf-8")
        assert not [word for word in words if word in text], path.relative_to(PACKAGE)


def test_every_package_folder_has_an_init_file():
    missing = {path.parent for path in sources()} - {path.parent for path in PACKAGE.rglob("__init__.py")}
    assert missing == set()
