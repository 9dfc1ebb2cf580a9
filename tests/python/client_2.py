"""Lists and calls tools with the Python client of the modern era; one JSON document in, one out."""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client


async def talk(server, spec):
    async with Client(server, mode=spec.get("mode", "auto")) as client:
        listed = await client.list_tools()
        results = []
        for call in spec["calls"]:
            result = await client.call_tool(call["name"], call["arguments"])
            results.append(result.model_dump(mode="json", by_alias=True, exclude_none=True))
        return {
            "protocol": client.protocol_version,
            "tools": [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in listed.tools],
            "results": results,
        }


async def main(spec):
    if "url" in spec:
        async with create_mcp_http_client(headers=spec.get("headers")) as http:
            return await talk(streamable_http_client(spec["url"], http_client=http), spec)
    command, *arguments = spec["command"]
    return await talk(StdioServerParameters(command=command, args=arguments), spec)


print(json.dumps(asyncio.run(main(json.loads(sys.argv[1])))))
