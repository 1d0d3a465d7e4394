"""What `:` and the palette understand: kinds, namespaces, contexts, themes, verbs."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from slinkytui.backend import SlinkyError, Table
from slinkytui.kinds import KINDS, find_kind
from slinkytui.kinds.verbs import VERBS
from slinkytui.screens.chooser import Choice, Chooser
from slinkytui.screens.listing import KindScreen
from slinkytui.screens.lists import ListScreen
from slinkytui.screens.operator import OperatorScreen
from slinkytui.styles.palette import PALETTES

if TYPE_CHECKING:
    from slinkytui.app import SlinkyApp

_WORDS = ("board", "operator", "ns", "ctx", "theme", "q")


def suggestions() -> list[str]:
    """What the prompt completes."""
    return sorted([*KINDS, *_WORDS, *VERBS, *(f"theme {t}" for t in PALETTES)])


async def obey(app: SlinkyApp, text: str) -> None:
    """One `:` command. An unknown word is told with the nearest known one."""
    word, _, rest = text.strip().partition(" ")
    rest = rest.strip()
    match word:
        case "":
            return
        case "q" | "quit":
            app.exit()
        case "board" | "b":
            while len(app.screen_stack) > 2:
                app.pop_screen()
        case "operator" | "op":
            await app.push_screen(OperatorScreen())
        case "ns" | "namespace":
            await _namespace(app, rest)
        case "ctx" | "context":
            await _context(app, rest)
        case "theme":
            _theme(app, rest)
        case _ if word in VERBS:
            _verb(app, word)
        case _:
            kind = find_kind(word)
            if kind is not None:
                await app.push_screen(KindScreen(kind, rest))
                return
            near = difflib.get_close_matches(word, suggestions(), 1)
            hint = f"did you mean :{near[0]}?" if near else "a kind (nodes, jobs, pods …), ns, ctx, theme, board or q"
            app.notify(f"no command {word!r}: {hint}", severity="warning", markup=False)


def _verb(app: SlinkyApp, verb_id: str) -> None:
    screen = app.screen
    pane = screen.active_pane() if isinstance(screen, ListScreen) else None
    if isinstance(screen, ListScreen) and pane is not None and verb_id in pane.kind.verbs:
        screen.action_verb(verb_id)
    else:
        app.notify(f"{verb_id} is for rows of {VERBS[verb_id].kind}: go there first", severity="warning")


def _theme(app: SlinkyApp, name: str) -> None:
    if name not in PALETTES:
        app.notify(f"themes: {' '.join(PALETTES)}", severity="warning")
        return
    app.repaint_as(name)


async def _namespace(app: SlinkyApp, name: str) -> None:
    """To a namespace, `all`, or a choice of those that are known."""
    reader = app.reader
    if reader is None:
        return
    if not name:
        names = await _namespaces(app)
        now = reader.hello.namespace if reader.hello else ""
        choices = [Choice("all", "all namespaces", "" if now else "now")]
        choices += [Choice(n, n, "now" if n == now else "") for n in names]
        name = await _chosen(app, "Namespace", choices)
    if name:
        await _switch(app, namespace="" if name in ("all", "*") else name)


async def _chosen(app: SlinkyApp, title: str, choices: list[Choice]) -> str:
    taken = await app.push_screen_wait(Chooser(title, choices, plain=app.palette.plain))
    return taken or ""


async def _namespaces(app: SlinkyApp) -> list[str]:
    """Namespaces that the API server lists, else those of the objects that we see."""
    reader = app.reader
    if reader is None:
        return []
    await reader.subscribe(Table.NAMESPACES)
    found = {str(key[1]) for key in reader.rows(Table.NAMESPACES)}
    for table in (Table.NODESETS, Table.CONTROLLERS, Table.PODS):
        found |= {str(getattr(key, "namespace", "")) for key in reader.rows(table)}
    return sorted(n for n in found if n)


async def _context(app: SlinkyApp, name: str) -> None:
    reader = app.reader
    hello = reader.hello if reader is not None else None
    if hello is None:
        return
    if hello.sim or not hello.contexts:
        app.notify("a simulated cluster has one context" if hello.sim else "no kubeconfig: no contexts", timeout=3)
        return
    if not name:
        choices = [Choice(c, c, "now" if c == hello.context else "") for c in hello.contexts]
        name = await _chosen(app, "Context", choices)
    if name:
        await _switch(app, context=name)


async def _switch(app: SlinkyApp, *, context: str | None = None, namespace: str | None = None) -> None:
    """Another context or namespace; when that fails all stays as it was."""
    reader = app.reader
    if reader is None:
        return
    try:
        hello = await reader.switch(context=context, namespace=namespace)
    except SlinkyError as error:
        app.notify(error.line(), severity="error", markup=False)
        return
    app.forget_rights()
    app.notify(f"{hello.context or 'Slurm only'}, {hello.namespace or 'all namespaces'}", timeout=3, markup=False)
    app.refill()


async def open_palette(app: SlinkyApp) -> None:
    """Everything that can be done now, by name."""
    choices = [Choice(f":{k.id}", f"list {k.title}", f":{k.id}") for k in KINDS.values()]
    choices += [
        Choice(":operator", "the operator at work", ":operator"), Choice(":ns", "another namespace", ":ns"), Choice(":ctx", "another context", ":ctx"),
        *(Choice(f":theme {t}", f"theme {t}", f":theme {t}") for t in PALETTES), Choice(":q", "quit", ":q"),
    ]  # fmt: skip
    screen = app.screen
    actions = []
    for active in screen.active_bindings.values():
        binding = active.binding
        ours = binding.id is not None and not binding.id.startswith(("table.", "grid."))
        if ours and active.enabled and binding.description and binding.action != "palette":
            key = app.get_key_display(binding)
            actions.append(Choice(binding.action, binding.description, f"key {key}"))
    unique = {c.text: c for c in (*actions, *choices)}
    taken = await _chosen(app, "Everything", list(unique.values()))
    if not taken:
        return
    if taken.startswith(":"):
        await obey(app, taken[1:])
    else:
        await screen.run_action(taken)
