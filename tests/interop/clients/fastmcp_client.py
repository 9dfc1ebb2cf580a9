"""Lists and calls tools with FastMCP's client; one JSON document in, one out."""

import asyncio
import json
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport


async def main(spec):
    if "url" in spec:
        transport = StreamableHttpTransport(spec["url"])
    else:
        command, *arguments = spec["command"]
        transport = StdioTransport(command=command, args=arguments, env=spec.get("env"))
    async with Client(transport) as client:
        dumped = {"mode": "json", "by_alias": True, "exclude_none": True}
        tools = [tool.model_dump(**dumped) for tool in await client.list_tools()]
        results = []
        for call in spec["calls"]:
            result = await client.call_tool_mcp(call["name"], call["arguments"])
            results.append(result.model_dump(**dumped))
        return {"tools": tools, "results": results}


print(json.dumps(asyncio.run(main(json.loads(sys.argv[1])))))
