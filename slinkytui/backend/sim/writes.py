"""Creating, changing and deleting objects: admission, preconditions, owners of fields, dry runs, subresources."""

from __future__ import annotations

import copy
import json
import uuid
from collections.abc import Callable
from typing import Any

from slinkytui.backend.http import Request, Response
from slinkytui.backend.sim import ownership, validate
from slinkytui.backend.sim.bodies import APPLY, kind_of, patched, sent
from slinkytui.backend.sim.defaults import filled
from slinkytui.backend.sim.evict import blocked_by, release
from slinkytui.backend.sim.failures import Failed, about, conflict, invalid, qualified, qualified_kind
from slinkytui.backend.sim.objects import BY_PLURAL, SLINKY, Name, Objects, Served, rfc3339
from slinkytui.backend.sim.schema import Node, schema_of
from slinkytui.backend.sim.views import core_event

Object = dict[str, Any]
_KEPT = (
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "name",
    "namespace",
)
_MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


class Writes:
    """`respond` makes the answer of an object in the form that the request asks for."""

    def __init__(self, objects: Objects, respond: Callable[[Request, Served, Object, int], Response]) -> None:
        self.objects, self._respond = objects, respond

    def create(self, request: Request, served: Served, namespace: str) -> Response:
        body = sent(request)
        if served.group == "events.k8s.io":
            body = core_event(body)
        return self._create(request, served, namespace, body)

    def _create(self, request: Request, served: Served, namespace: str, body: Object) -> Response:
        meta = body.setdefault("metadata", {})
        self._placed(served, namespace, meta)
        name = meta.get("name") or ""
        if not name and meta.get("generateName"):
            name = meta["name"] = f"{meta['generateName']}{uuid.uuid4().hex[:5]}"
        if not name:
            raise invalid(
                served,
                "",
                [("FieldValueRequired", "Required value: name or generateName is required", "metadata.name")],
            )
        if self.objects.get(served, namespace if served.namespaced else "", name):
            raise Failed(409, "AlreadyExists", f'{qualified(served)} "{name}" already exists', about(served, name))
        for key in ("uid", "creationTimestamp", "resourceVersion", "generation", "deletionTimestamp"):
            meta.pop(key, None)
        if "status" in served.subs:
            body.pop("status", None)
        if served.plural == "pods":
            body["status"] = {"phase": "Pending", "qosClass": "BestEffort"}
        body, warned = self._admitted(request, served, body, name)
        owned = ownership.updated({}, body, _node(served), self._owner(request, served, "Update"), self._now())
        body["metadata"]["managedFields"] = owned
        return _warning(self._respond(request, served, self._kept(request, served, body), 201), warned)

    def _placed(self, served: Served, namespace: str, meta: Object) -> None:
        if not served.namespaced:
            meta.pop("namespace", None)
            return
        if meta.get("namespace", namespace) != namespace:
            text = "the namespace of the provided object does not match the namespace sent on the request"
            raise Failed(400, "BadRequest", text)
        meta["namespace"] = namespace
        space = self.objects.get(BY_PLURAL["", "namespaces"], "", namespace)
        if not space:
            raise Failed(
                404, "NotFound", f'namespaces "{namespace}" not found', {"name": namespace, "kind": "namespaces"}
            )

    def change(self, request: Request, served: Served, found: Object, sub: str) -> Response:
        """PUT or PATCH of an object that is there."""
        name = found["metadata"]["name"]
        if request.method == "PATCH" and kind_of(request) == APPLY and sub != "scale":
            return self.apply(request, served, found["metadata"].get("namespace", ""), name, sub)
        base = scale_of(found) if sub == "scale" else found
        new = sent(request) if request.method == "PUT" else patched(request, served, base, _node(served))
        asked = str((new.get("metadata") or {}).get("resourceVersion") or "")
        if asked and asked != found["metadata"]["resourceVersion"]:
            raise conflict(served, name, _MODIFIED)
        uid = (new.get("metadata") or {}).get("uid")
        if uid and uid != found["metadata"]["uid"] and not sub:
            causes = [("FieldValueInvalid", f'Invalid value: "{uid}": field is immutable', "metadata.uid")]
            raise invalid(served, name, causes)
        if request.method == "PUT" and not asked and served.group == SLINKY and not sub:
            text = "metadata.resourceVersion: Invalid value: 0: must be specified for an update"
            raise Failed(422, "Invalid", f'{qualified(served)} "{name}" is invalid: {text}', about(served, name))
        stored, warned = self._changed(request, served, found, new, sub)
        owner = self._owner(request, served, "Update", sub)
        stored["metadata"]["managedFields"] = ownership.updated(found, stored, _node(served), owner, self._now())
        done = self._written(request, served, found, stored)
        return _warning(self._respond(request, served, scale_of(done) if sub == "scale" else done, 200), warned)

    def _changed(
        self, request: Request, served: Served, old: Object, new: Object, sub: str
    ) -> tuple[Object, list[str]]:
        stored = copy.deepcopy(old)
        given = (new.get("metadata") or {}).get("managedFields")
        if sub == "scale":
            replicas = (new.get("spec") or {}).get("replicas", 0)
            if not isinstance(replicas, int) or replicas < 0:
                text = f"Invalid value: {replicas}: must be greater than or equal to 0"
                scale = Served("autoscaling", "v1", "scales", "Scale")
                raise invalid(scale, old["metadata"]["name"], [("FieldValueInvalid", text, "spec.replicas")])
            stored.setdefault("spec", {})["replicas"] = replicas
            return stored, []
        if sub == "status":
            stored["status"] = new.get("status")
        else:
            kept = {k: old["metadata"][k] for k in _KEPT if k in old["metadata"]}
            meta = {k: v for k, v in (new.get("metadata") or {}).items() if k not in _KEPT}
            stored = {**new, "metadata": {**meta, **kept, "resourceVersion": old["metadata"]["resourceVersion"]}}
            if "status" in served.subs and "status" in old:
                stored["status"] = old["status"]
        if given is not None and given != old["metadata"].get("managedFields"):
            stored["metadata"]["managedFields"] = given
        else:
            stored["metadata"].pop("managedFields", None)
        return self._admitted(request, served, stored, old["metadata"]["name"])

    def apply(self, request: Request, served: Served, namespace: str, name: str, sub: str = "") -> Response:
        """Server-side apply; makes the object where there is none."""
        body = sent(request)
        meta = body.setdefault("metadata", {})
        if not request.first("fieldManager"):
            cause = ("FieldValueRequired", "Required value: is required for apply patch", "fieldManager")
            raise invalid(Served("meta.k8s.io", "", "patchoptions", "PatchOptions"), "", [cause])
        if meta.get("managedFields"):
            raise Failed(400, "BadRequest", "metadata.managedFields must be nil")
        meta.setdefault("name", name)
        where = f"{meta.get('namespace', '')}/{name}"
        self._placed(served, namespace, meta)
        node, found = _node(served), self.objects.get(served, namespace if served.namespaced else "", name)
        lost = validate.unknown(body, node)
        if lost:
            kind = f"{served.group}/{served.version}, Kind={served.kind}"
            raise Failed(
                500,
                "",
                f"failed to create typed patch object ({where}; {kind}): .{lost[0]}: field not declared in schema",
            )
        body.pop("spec" if sub == "status" else "status", None)
        asked = str(meta.pop("resourceVersion", ""))
        if found and asked and asked != found["metadata"]["resourceVersion"]:
            raise conflict(served, name, _MODIFIED)
        owner = self._owner(request, served, "Apply", sub)
        forced = request.first("force") in ("true", "1")
        new = ownership.applied(found or {}, body, node, owner, force=forced, now=self._now())
        ownership.kept_in_step(found or {}, new, body, owner)
        if found is None:
            if served.plural == "pods":
                new["status"] = {"phase": "Pending", "qosClass": "BestEffort"}
            new, warned = self._admitted(request, served, new, name)
            return _warning(self._respond(request, served, self._kept(request, served, new), 201), warned)
        new, warned = self._admitted(request, served, new, name)
        return _warning(self._respond(request, served, self._written(request, served, found, new), 200), warned)

    def _admitted(self, request: Request, served: Served, found: Object, name: str) -> tuple[Object, list[str]]:
        """The object as it may be stored, and what a client is warned of. Raises Failed (400, 422)."""
        node = _node(served)
        lost = validate.unknown(found, node)
        mode = request.first("fieldValidation") or "Warn"
        told = [f'unknown field "{at}"' for at in lost]
        if lost and mode == "Strict" and kind_of(request) != APPLY:
            kind = f'{served.kind} in version "{served.version}" cannot be handled as a {served.kind}'
            raise Failed(400, "BadRequest", f"{kind}: strict decoding error: {', '.join(told)}")
        if lost:
            found = validate.pruned(found, node)
        if served.group == SLINKY:
            parts = {k: node["properties"][k] for k in ("spec", "status") if k in found}
            for part, inner in parts.items():
                found[part] = validate.defaulted(found[part], inner)
            causes = validate.broken({p: (found[p], n) for p, n in parts.items()}, scaled="scale" in served.subs)
            if causes:
                raise invalid(served, name, causes)
        else:
            found = filled(served, found)
        return found, told if mode == "Warn" else []

    def _kept(self, request: Request, served: Served, new: Object) -> Object:
        wrong = validate.misnamed(served.group, served.plural, new["metadata"]["name"])
        if wrong:
            raise invalid(served, new["metadata"]["name"], wrong)
        if request.first("dryRun"):
            meta = {**new["metadata"], "uid": str(uuid.uuid4()), "creationTimestamp": self._now()}
            return {"apiVersion": served.api, "kind": served.kind, **new, "metadata": meta}
        return self.objects.put(served, new)

    def _written(self, request: Request, served: Served, old: Object, new: Object) -> Object:
        if request.first("dryRun"):
            return new
        if _same(old, new):
            return old
        return self.objects.put(served, new, spec_changed=new.get("spec") != old.get("spec"))

    def _owner(self, request: Request, served: Served, operation: str, sub: str = "") -> ownership.Owner:
        agent = request.headers.get("user-agent", "").partition("/")[0]
        return ownership.Owner(request.first("fieldManager") or agent or "unknown", operation, served.api, sub)

    def _now(self) -> str:
        return rfc3339(self.objects.now())

    # What goes.

    def evict(self, request: Request, served: Served, key: Name, found: Object) -> Response:
        why = blocked_by(self.objects, found)
        if why:
            cause = {"reason": "DisruptionBudget", "message": why}
            text = "Cannot evict pod as it would violate the pod's disruption budget."
            raise Failed(429, "TooManyRequests", text, {"causes": [cause]})
        options = json.dumps(sent(request).get("deleteOptions") or {}).encode()
        self.delete(Request("DELETE", request.path, request.query, {}, options), served, key, found)
        return _status({"status": "Success", "code": 201}, 201)

    def bind(self, request: Request, served: Served, found: Object) -> Response:
        """pods/binding: the pod is on a node from now on."""
        bound = copy.deepcopy(found)
        bound.setdefault("spec", {})["nodeName"] = sent(request)["target"]["name"]
        scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": self._now()}
        bound.setdefault("status", {})["conditions"] = [scheduled]
        self.objects.put(served, bound)
        return _status({"status": "Success", "code": 201}, 201)

    def delete(self, request: Request, served: Served, key: Name, found: Object) -> Response:
        body = sent(request) if request.body else {}
        asked = body.get("preconditions") or {}
        for field, word in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
            wanted, held = asked.get(field), found["metadata"][field]
            if wanted and wanted != held:
                text = f"the {word} in the precondition ({wanted}) does not match the {word} in record ({held}). The object might have been {'deleted and then recreated' if field == 'uid' else 'modified'}"
                failed = conflict(served, key[1], text)
                failed.message = f'Operation cannot be fulfilled on {qualified_kind(served)} "{key[1]}": {text}'
                raise failed
        policy = body.get("propagationPolicy") or request.first("propagationPolicy")
        if request.first("dryRun") or body.get("dryRun"):
            return self._respond(request, served, found, 200)
        grace = _grace(served, found, body.get("gracePeriodSeconds", request.first("gracePeriodSeconds")))
        if found["metadata"].get("finalizers") or grace:
            marked = copy.deepcopy(found)
            marked["metadata"].setdefault("deletionTimestamp", rfc3339(self.objects.now() + grace))
            marked["metadata"].setdefault("deletionGracePeriodSeconds", grace)
            return self._respond(request, served, self.objects.put(served, marked), 200)
        if served.plural == "namespaces":
            self._empty(key[1])
        gone = self.objects.drop(served, key)
        release(self.objects, gone["metadata"]["uid"], orphan=policy == "Orphan")
        if served.plural == "pods":
            return self._respond(request, served, gone, 200)
        return _status({"status": "Success", "details": {**about(served, key[1]), "uid": gone["metadata"]["uid"]}}, 200)

    def _empty(self, namespace: str) -> None:
        for served in BY_PLURAL.values():
            for key, _ in list(self.objects.all(served, namespace)) if served.namespaced else ():
                self.objects.drop(served, key)


def _node(served: Served) -> Node:
    kind = BY_PLURAL["", "events"] if served.plural == "events" else served
    return schema_of(kind.group, kind.version, kind.kind)


def _grace(served: Served, found: Object, asked: Any) -> int:
    """Seconds that a pod on a node has to end; 0 for everything else."""
    spec = found.get("spec") or {}
    if served.plural != "pods" or not spec.get("nodeName"):
        return 0
    if (found.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return 0
    return int(asked if asked not in (None, "") else spec.get("terminationGracePeriodSeconds") or 30)


def _same(old: Object, new: Object) -> bool:
    def bare(found: Object) -> Object:
        meta = {k: v for k, v in found["metadata"].items() if k != "resourceVersion" and v not in (None, [], {})}
        return {
            k: v for k, v in {**found, "metadata": meta}.items() if k not in ("kind", "apiVersion") and v is not None
        }

    return bare(old) == bare(new)


def _status(found: Object, code: int) -> Response:
    return Response(code, json.dumps({"kind": "Status", "apiVersion": "v1", "metadata": {}, **found}).encode())


def _warning(response: Response, told: list[str]) -> Response:
    if told:
        quoted = (t.replace("\\", "\\\\").replace('"', '\\"') for t in told)
        response.headers = {"Warning": ", ".join(f'299 - "{t}"' for t in quoted)}
    return response


def scale_of(found: Object) -> Object:
    """The Scale of an object."""
    meta, status = found["metadata"], found.get("status") or {}
    wanted = status.get("selector", "")
    if not wanted:
        match = ((found.get("spec") or {}).get("selector") or {}).get("matchLabels") or {}
        wanted = ",".join(f"{k}={v}" for k, v in sorted(match.items()))
    return {
        "kind": "Scale", "apiVersion": "autoscaling/v1",
        "metadata": {k: meta[k] for k in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp") if k in meta},
        "spec": {"replicas": (found.get("spec") or {}).get("replicas", 0)},
        "status": {"replicas": status.get("replicas", 0), "selector": wanted},
    }  # fmt: skip
