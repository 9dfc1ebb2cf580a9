"""Lists and calls tools with the Python client of the legacy era; one JSON document in, one out."""

import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client


async def talk(streams, calls):
    async with ClientSession(streams[0], streams[1]) as session:
        opened = await session.initialize()
        listed = await session.list_tools()
        results = []
        for call in calls:
            result = await session.call_tool(call["name"], call["arguments"])
            results.append(result.model_dump(mode="json", by_alias=True, exclude_none=True))
        return {
            "protocol": opened.protocolVersion,
            "tools": [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in listed.tools],
            "results": results,
        }


async def main(spec):
    if "url" in spec:
        transport = streamablehttp_client(spec["url"], headers=spec.get("headers"))
    else:
        command, *arguments = spec["command"]
        transport = stdio_client(StdioServerParameters(command=command, args=arguments))
    async with transport as streams:
        return await talk(streams, spec["calls"])


print(json.dumps(asyncio.run(main(json.loads(sys.argv[1])))))
