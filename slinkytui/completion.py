"""Shell completion made from the parser itself: commands, options, kinds, verbs."""

from __future__ import annotations

import argparse
import shlex


def words(parser: argparse.ArgumentParser) -> dict[str, list[str]]:
    """What may follow `slinkytui` ("") and each command: options, and for some the words of the next place."""
    from slinkytui.kinds import KINDS
    from slinkytui.kinds.verbs import VERBS

    (commands,) = [a.choices for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    out = {"": [*commands, *_options(parser)]}
    for name, sub in commands.items():
        out[name] = _options(sub)
    out["get"] += KINDS
    out["do"] += VERBS
    out["sim"] += ["serve", "set"]
    out["completion"] += ["bash", "zsh", "fish"]
    return out


def _options(parser: argparse.ArgumentParser) -> list[str]:
    return [o for a in parser._actions for o in a.option_strings if o.startswith("--")]


def script(shell: str, parser: argparse.ArgumentParser) -> str:
    """The completion script of a shell, to be sourced."""
    found = words(parser)
    if shell == "fish":
        return _fish(found)
    cases = "\n".join(f"    {name}) words={shlex.quote(' '.join(w))} ;;" for name, w in found.items() if name)
    body = _BASH.replace("@FIRST@", shlex.quote(" ".join(found[""]))).replace("@CASES@", cases)
    body = body.replace("@COMMANDS@", "|".join(n for n in found if n))
    return ("autoload -U +X bashcompinit && bashcompinit\n" if shell == "zsh" else "") + body


_BASH = """_slinkytui() {
  local word words=@FIRST@ cur=${COMP_WORDS[COMP_CWORD]}
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do case $word in @COMMANDS@) case $word in
@CASES@
  esac; break ;; esac; done
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _slinkytui slinkytui
"""


def _fish(found: dict[str, list[str]]) -> str:
    names = [n for n in found if n]
    lines = [f"complete -c slinkytui -n __fish_use_subcommand -a {shlex.quote(' '.join(names))}"]
    for name, offered in found.items():
        when = f"'__fish_seen_subcommand_from {name}'" if name else "__fish_use_subcommand"
        lines += [f"complete -c slinkytui -n {when} -l {o[2:]}" for o in offered if o.startswith("--")]
        plain = [o for o in offered if not o.startswith("--")] if name else []
        if plain:
            lines.append(f"complete -c slinkytui -n {when} -a {shlex.quote(' '.join(plain))}")
    return "\n".join(lines) + "\n"
