"""What is said of a rule beside its tests: decisions where there is no test, and regressions of the past in one sentence each."""

from __future__ import annotations

DECIDED: dict[str, str] = {
    "F1": (
        "ScheduledUpdate is refused with a condition until the part that brings its reservations; no "
        "finalizer of ours stands for one, and what a former operator left is dropped with that part."
    ),
    "F2": "No reservation is looked up and none of its finalizers written until the part that brings ScheduledUpdate.",
    "F3": (
        "The reservation finalizer of a former operator is left alone until the part that brings "
        "ScheduledUpdate, which removes it after a confirmed absence."
    ),
    "F4": (
        "Deleting a reservation with its NodeSet belongs to the part that brings ScheduledUpdate; until then "
        "a condition refuses the strategy."
    ),
    "W51": (
        "Completed schedules are recorded with the part that brings ScheduledUpdate; until then the strategy "
        "is refused with a condition and no maintenance is ever created."
    ),
    "Q1": "slurm.conf and the address of an external Accounting belong to the part that writes configurations.",
    "Q2": "The Accounting pod belongs to the part with the other kinds' controllers.",
    "Q7": (
        "The slurmctld StatefulSet belongs to the part with the other kinds' controllers; for workers our "
        "anti-affinity is appended after merging."
    ),
    "Q8": "ServiceMonitors belong to the part with the other kinds' controllers.",
    "Q9": "The slurmrestd Deployment belongs to the part with the other kinds' controllers.",
    "Q10": "The login Deployment belongs to the part with the other kinds' controllers.",
    "Q12": "Watching the database password belongs to the part with the other kinds' controllers.",
    "Q13": "The hash over configuration files belongs to the part that writes configurations.",
    "Q14": "Minting Tokens belongs to the part with the other kinds' controllers.",
    "Q16": "The label of the active slurmctld belongs to the part with the other kinds' controllers.",
    "Q17": "The owner of a Token's Secret belongs to the part with the other kinds' controllers.",
    "Q18": "The login pods belong to the part with the other kinds' controllers.",
    "Q21": "Roles and bindings of the webhook belong to the part that brings the charts.",
    "Q23": "Chart defaults belong to the part that brings the charts.",
    "Q24": "LoginSet host keys and Token secrets belong to the part with the other kinds' controllers.",
    "Q25": "Conditions on the other kinds belong to the part with their controllers; NodeSets have theirs.",
    "Q26": "The binding webhook belongs to the part that brings admission.",
    "Q27": "Comparing changes of persistence belongs to the part that brings admission.",
    "Q28": (
        "Kept for compatibility: labels and annotations on a NodeSet's ConfigMap are only added to, because "
        "foreign ones have to survive; pods get the present ones when they are made."
    ),
    "T9": (
        "The condition of a maintenance reservation belongs to the part that brings ScheduledUpdate; until "
        "then the strategy is refused with a condition and a SlurmReservation condition of a former operator "
        "is left as it is."
    ),
    "L14": "No reservation is looked up until the part that brings ScheduledUpdate.",
    "L15": "Which pods stand under a reservation is asked by the part that brings ScheduledUpdate.",
    "L16": "Deleting a reservation belongs to the part that brings ScheduledUpdate.",
    "L17": "Creating and updating a reservation belongs to the part that brings ScheduledUpdate.",
    "L21": (
        "The ping of both slurmctlds and the label of the active one belong to the part with the other kinds'"
        " controllers."
    ),
    "H4": (
        "Slurm and JWT keys are in no NodeSet's objects: a new key concerns the client, which reads it again "
        "when a token is refused; only the ssh files of a NodeSet are followed (W40)."
    ),
    "W44": (
        "Merged into W6: a record of a worker that is gone goes with the same rule, so that no job keeps a "
        "partition that is not there."
    ),
    "W56": "The number is not used: no weak spot has it.",
    "S6": "Events always have a recorder: it is a part of the operator, so that a pass without one cannot be made.",
}
"""Rule → what was decided, for rules that no test of ours can hold or that belong to a part that is not there yet."""

REGRESSIONS: tuple[str, ...] = (
    "A node that a prolog, an epilog, a health check or a person drained is not undrained by the operator.",
    "Scale-in goes by running jobs, not only by number, and the Slurm name of a worker need not be its pod's.",
    "Every pod counts for the size, those too that are not active.",
    "What one NodeSet selects is never another's.",
    "An update goes on though many pods are unhealthy.",
    "A strategy is never taken for recreating everything.",
    "An old look at a pod does not delete where a drain is due.",
    "Conditions of a pod say what Slurm says.",
    "A pod that is gone is no error when it is written.",
    "Drained is what Slurm calls drained.",
    "A drain is looked at before it is asked for or lifted: a person's opposite act is not raced.",
    "The words of a drained node are not written over by later drains.",
    "A worker that moved to another machine is resumed.",
    "A node that is down or silent is never undrained.",
    "The operator's prefix stands before a drain's words once.",
    "A cordon of the machine is a cordon of the pod and a drain of the Slurm node, with the machine's own words.",
    "The budget lets no busy pod be evicted.",
    "Shared objects have every NodeSet as an owner and none as their controller; nothing is owned across namespaces.",
    "A pod's conditions are written once a pass and not again when they are right, and none stands there twice.",
    "A pod that is missing stops no pass.",
    "Size and status come right though the API server drops requests.",
    "After a drain the nodes that were written are read anew, so that scale-in goes on.",
    "A job list or a node list that fails ends no pod.",
    "A worker that an administrator has removed from Slurm goes only when that is certain.",
    "A cordon or a change of size is withdrawn in another pass than the one that condemns.",
    "Whose a pod is does not depend on who asked for it.",
    "Equally cordoned pods are ordered by the other keys.",
    "Old pods are told apart by their health, not by their age.",
    "Replacements that are not ready use the budget.",
    "Errors of pods are gathered, none is lost.",
    "A claim that was made is not missing.",
    "A status that is written causes no further pass that writes.",
    "A list that fails in a handler does not end the process.",
    "Records without a worker are pruned where that is set.",
    "A worker that is pinned stays on its machine.",
    "A host name that a machine asks for is its worker's.",
    "Features of the machine reach Slurm, and others stay.",
    "Topology follows the machine.",
)
"""X1, X2 … in this order."""
