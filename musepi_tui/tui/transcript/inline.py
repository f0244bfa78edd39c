"""Inline Markdown as styled spans: emphasis, code, links, images. Nothing of the text is lost."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.style import Style

from musepi_tui.base.dataclass import dataclass
from musepi_tui.base.safe_text import display_safe
from musepi_tui.tui.themes import Palette
from musepi_tui.tui.transcript.lines import BOLD, ITALIC, Span

if TYPE_CHECKING:
    from markdown_it.token import Token

_LINKED = re.compile(r"(?:https?://|mailto:)[!-~]+\Z")
"""Addresses a terminal may open. Printable ASCII only: what stands in OSC 8 goes out unfiltered."""

_STRIKE = Style(strike=True)


@dataclass(frozen=True, slots=True)
class Inline:
    """What inline text is drawn with: ``base`` is the style of its surroundings."""

    palette: Palette
    base: Style

    def spans(self, token: "Token") -> list[Span]:
        """The spans of an ``inline`` token. Line breaks of the source stay line breaks."""
        found: list[Span] = []
        styles: list[Style] = [self.base]
        addresses: list[tuple[str, int]] = []
        for child in token.children or ():
            match child.type:
                case "strong_open" | "em_open" | "s_open":
                    styles.append(styles[-1] + _EMPHASIS[child.type])
                case "link_open":
                    address = str(child.attrs.get("href") or "")
                    addresses.append((address, len(found)))
                    styles.append(styles[-1] + self._link_style(address))
                case "link_close":
                    styles.pop()
                    self._close_link(found, *addresses.pop())
                case "strong_close" | "em_close" | "s_close":
                    styles.pop()
                case _:
                    found.extend(self._leaf(child, styles[-1]))
        return found

    def _leaf(self, child: "Token", style: Style) -> list[Span]:
        match child.type:
            case "softbreak" | "hardbreak":
                return [("\n", style)]
            case "code_inline":
                return [(_one_line(child.content), style + self.palette.style("mdCode"))]
            case "image":
                address = _one_line(str(child.attrs.get("src") or ""))
                link = style + self._link_style(address)
                return [(f"[image: {_one_line(child.content)}]", link), *self._address(address)]
            case _:
                return [(_one_line(child.content), style)] if child.content else []

    def _link_style(self, address: str) -> Style:
        style = self.palette.style("mdLink") + Style(underline=True)
        return style + Style(link=address) if _LINKED.match(address) else style

    def _close_link(self, found: list[Span], address: str, start: int) -> None:
        """The address behind the text of a link, unless the text is the address."""
        text = "".join(part for part, _ in found[start:])
        if text not in (address, address.removeprefix("mailto:"), address.removesuffix("/")):
            found.extend(self._address(_one_line(address)))

    def _address(self, address: str) -> Sequence[Span]:
        return [(f" ({address})", self.base + self.palette.style("mdLinkUrl"))] if address else []


_EMPHASIS = {"strong_open": BOLD, "em_open": ITALIC, "s_open": _STRIKE}


def _one_line(text: str) -> str:
    """Entities of the source may have become controls: the text is made safe once more."""
    safe = display_safe(text)
    return safe.replace("\n", " ") if "\n" in safe else safe
