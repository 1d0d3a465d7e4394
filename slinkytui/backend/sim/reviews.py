"""Questions about rights: an admin may everything, a reader may look, anybody else nothing."""

from __future__ import annotations

from typing import Any, Final

READ: Final = ("get", "list", "watch")
_LOOK: Final = [
    "/api",
    "/api/*",
    "/apis",
    "/apis/*",
    "/healthz",
    "/livez",
    "/openapi",
    "/openapi/*",
    "/readyz",
    "/version",
    "/version/",
]


def review(resource: str, body: dict[str, Any], role: str) -> dict[str, Any] | None:
    """The answered review; None for a resource that is none."""
    match resource:
        case "selfsubjectaccessreviews" | "subjectaccessreviews":
            return {**body, "status": _access(body.get("spec") or {}, role)}
        case "selfsubjectrulesreviews":
            verbs = ["*"] if role == "admin" else list(READ)
            known = role in ("admin", "reader")
            rules = [{"verbs": verbs, "apiGroups": ["*"], "resources": ["*"]}] if known else []
            looks = (
                [{"verbs": ["*"], "nonResourceURLs": ["*"]}]
                if role == "admin"
                else [{"verbs": ["get"], "nonResourceURLs": _LOOK}]
            )
            return {**body, "status": {"resourceRules": rules, "nonResourceRules": looks, "incomplete": False}}
        case "selfsubjectreviews":
            groups = ["system:masters", "system:authenticated"] if role == "admin" else ["system:authenticated"]
            return {**body, "status": {"userInfo": {"username": role, "groups": groups}}}
    return None


def _access(spec: dict[str, Any], role: str) -> dict[str, Any]:
    asked = spec.get("resourceAttributes") or spec.get("nonResourceAttributes") or {}
    if role == "admin" or (role == "reader" and asked.get("verb") in READ):
        return {"allowed": True}
    return {"allowed": False, "reason": f"{role} may only read" if role == "reader" else ""}
