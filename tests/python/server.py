"""An MCP server with the tools that it is told: PORT sse|streamable-http TOOL…"""

import sys

from mcp.server.fastmcp import FastMCP


def tool(name):
    async def answer(text: str) -> str:
        return f"{name}: {text}"

    return answer


port, transport, *names = sys.argv[1:]
server = FastMCP("python", host="127.0.0.1", port=int(port), log_level="ERROR")
for each in names:
    server.add_tool(tool(each), name=each, description=f"Answers as {each}.")
server.run(transport=transport)
