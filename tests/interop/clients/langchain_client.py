"""Lists and calls tools as LangChain's agents do; one JSON document in, one out."""

import asyncio
import json
import sys

from langchain_mcp_adapters.client import MultiServerMCPClient


async def main(spec):
    if "url" in spec:
        connection = {"transport": "streamable_http", "url": spec["url"]}
    else:
        command, *arguments = spec["command"]
        connection = {"transport": "stdio", "command": command, "args": arguments, "env": spec.get("env")}
    tools = {tool.name: tool for tool in await MultiServerMCPClient({"server": connection}).get_tools()}
    results = []
    for call in spec["calls"]:
        message = {"type": "tool_call", "id": "1", "name": call["name"], "args": call["arguments"]}
        answer = await tools[call["name"]].ainvoke(message)
        # What makes each run another is left out.
        content = [{key: value for key, value in part.items() if key != "id"} for part in answer.content]
        results.append({"content": content, "isError": answer.status == "error"})
    listed = [
        {"name": tool.name, "description": tool.description, "inputSchema": tool.args_schema} for tool in tools.values()
    ]
    return {"tools": listed, "results": results}


print(json.dumps(asyncio.run(main(json.loads(sys.argv[1]))), default=str))
