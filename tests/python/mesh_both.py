"""flux7-mesh as published: an agent, and an operator with the operator's token. Arguments: URL TOKEN."""

import asyncio
import sys
import time

from mesh7 import AgentMesh, GovernedToolkit, MeshHooks
from mesh7.client import Action

url, token = sys.argv[1:]
agent = AgentMesh(url, agent="mesh-agent")
operator = AgentMesh(url, token=token)


def until(what, probe):
    for _ in range(600):
        found = probe()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(what)


def ok_traces():
    return [trace for trace in operator.traces(limit=1000) if trace["outcome"] == "ok" and trace["tool"].startswith("fixture.")]


# An agent.
assert agent.is_healthy(), agent.health()
names = {tool.name for tool in agent.tools()}
assert {"fixture.get_item", "fixture.write_item"} <= names, names
assert agent.decide("fixture.get_item", {"id": 1}).action == Action.ALLOW
denied = agent.decide("fixture.delete_item", {"id": 1})
assert denied.action == Action.DENY and denied.error, denied
assert agent.decide("fixture.write_item", {"id": 1}).action == Action.HUMAN_APPROVAL
called = agent.call_tool("fixture.get_item", {"id": 1})
assert called.action == Action.ALLOW and "get_item" in called.result, called
assert agent.call_tool("fixture.delete_item", {"id": 1}).action == Action.DENY

# Its own functions.
toolkit = GovernedToolkit(mesh=agent, namespace="mesh-agent")


@toolkit.tool
def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


@toolkit.tool
def publish(text: str) -> str:
    """Publishes."""
    raise AssertionError("it ran")


@toolkit.tool
def wipe() -> str:
    """Wipes."""
    raise AssertionError("it ran")


assert [schema["name"] for schema in toolkit.schemas()] == ["mesh-agent__add", "mesh-agent__publish", "mesh-agent__wipe"]
added = toolkit.execute("mesh-agent__add", {"a": 2, "b": 3})
assert added.action == Action.ALLOW and added.result == "5", added
assert toolkit.execute("publish", {"text": "x"}).action == Action.HUMAN_APPROVAL
assert toolkit.execute("wipe", {}).action == Action.DENY
blocks = toolkit.process_response([{"type": "tool_use", "id": "1", "name": "mesh-agent__add", "input": {"a": 1, "b": 1}}])
assert blocks == [{"type": "tool_result", "tool_use_id": "1", "content": "2"}], blocks

# Its harness's tools.
hooks = MeshHooks(mesh=agent).agent_sdk_hooks()["PreToolUse"][0]["hooks"]


def permission(tool):
    answer = asyncio.run(hooks[0]({"tool_name": tool, "tool_input": {}}, None, None))
    return answer["hookSpecificOutput"]["permissionDecision"]


assert [permission(tool) for tool in ("Read", "Write", "Bash")] == ["allow", "ask", "deny"]

# An agent's credential opens nothing of the operator's.
for refused in (agent.approvals, agent.grants, agent.traces, lambda: agent.create_grant("*", "5m")):
    try:
        refused()
    except Exception as error:
        assert error.response.status_code in (401, 403), error
    else:
        raise AssertionError("an agent's credential was enough")

# An operator.
waiting = agent.call_tool("fixture.write_item", {"id": 2})
assert waiting.action == Action.HUMAN_APPROVAL and waiting.approval_id, waiting
assert not agent.approve(waiting.approval_id)
pending = operator.pending("fixture.*")
assert [item["id"] for item in pending] == [waiting.approval_id], pending
assert pending[0]["agent_id"] == "mesh-agent" and pending[0]["tool"] == "fixture.write_item", pending
detail = operator.approval_detail(waiting.approval_id)
assert "recent_traces" in detail and "active_grants" in detail, detail
assert operator.approve(waiting.approval_id)
assert not operator.deny(waiting.approval_id), "an answered approval is answered once"
# The call that waited runs now, once.
until("the approved call runs", lambda: [t for t in ok_traces() if t.get("approval_id") == waiting.approval_id])

refused = agent.call_tool("fixture.write_item", {"id": 3})
assert refused.action == Action.HUMAN_APPROVAL, refused
assert operator.deny(refused.approval_id)

resolved = agent.call_tool("fixture.write_item", {"id": 4})
assert operator.resolve(resolved.approval_id, "deny", resolved_by="pat", reasoning="too late", confidence=0.9)
listed = {item["id"]: item for item in operator.approvals(status="denied", tool="fixture.write_item")}
assert listed[resolved.approval_id]["reasoning"] == "too late", listed
assert operator.pending() == []

# Grants lift the question for a while. A client with a token names no agent, so it cannot say whom; one with a label can.
try:
    operator.create_grant("fixture.write_item", "5m")
except Exception as error:
    assert error.response.status_code == 400 and "agent" in error.response.json()["error"], error.response.text
else:
    raise AssertionError("a grant for nobody")
granting = AgentMesh(url, agent="mesh-agent")
granting._session.headers["Authorization"] = f"Bearer {token}"
grant = granting.create_grant("fixture.write_item", "5m")
assert grant["agent"] == "mesh-agent" and grant["id"], grant
assert [item["id"] for item in operator.grants()] == [grant["id"]]
# The sidecar hears of a grant in its own time: until then it asks.
until("the grant arrives", lambda: agent.decide("fixture.write_item", {"id": 5}).action == Action.ALLOW)
granted = agent.call_tool("fixture.write_item", {"id": 5})
assert granted.action == Action.ALLOW, granted
assert operator.revoke_grant(grant["id"])
assert operator.grants() == []
until(
    "the grant ends", lambda: agent.decide("fixture.write_item", {"id": 6}).action == Action.HUMAN_APPROVAL
)

traces = until("three records", lambda: len(ok_traces()) >= 3 and ok_traces())
assert {trace["agent_id"] for trace in traces} == {"mesh-agent"}, traces
assert sorted(trace["tool"] for trace in traces) == ["fixture.get_item", "fixture.write_item", "fixture.write_item"], traces
