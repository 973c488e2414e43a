# SPDX-License-Identifier: Apache-2.0
"""check_mcp.py - `vramcast mcp` by the client of the official Python SDK, and the documents by the
jsonschema package. Needs both (make check-mcp)."""
import asyncio
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap  # noqa: E402
import jsonschema  # noqa: E402
from mcp import ClientSession, StdioServerParameters  # noqa: E402
from mcp.client.stdio import stdio_client  # noqa: E402

PROGRAM = os.environ["VRAMCAST"]


async def talk(conversation):
    server = StdioServerParameters(command=PROGRAM, args=["mcp"])
    async with stdio_client(server) as (reader, writer):
        async with ClientSession(reader, writer) as session:
            opened = await session.initialize()
            return opened, await conversation(session)


def run(conversation):
    return asyncio.run(asyncio.wait_for(talk(conversation), 120))


def dumped(model):
    return json.loads(model.model_dump_json(by_alias=True))


def test_session():
    """the SDK's client opens a session, lists the tools and finds their schemas to be schemas"""
    async def conversation(session):
        return await session.list_tools()
    opened, listed = run(conversation)
    assert dumped(opened)["serverInfo"]["name"] == "vramcast"
    tools = dumped(listed)["tools"]
    assert len(tools) == 5
    for tool in tools:
        jsonschema.Draft202012Validator.check_schema(tool["inputSchema"])


def test_calls():
    """it calls a tool, gets the answer, and sees errors as what they are"""
    async def conversation(session):
        await session.send_ping()
        return (await session.call_tool("sim", {"path": ["traces/decomfl.vct"], "gpu": ["t4"]}),
                await session.call_tool("sim", {"path": ["traces/decomfl.vct"], "gpu": ["t4"], "json": True}),
                await session.call_tool("sim", {"path": ["nope"]}))
    _, replies = run(conversation)
    words, document, error = map(dumped, replies)
    assert words["content"][0]["text"].startswith("torch 2.9 on Tesla T4: fits") and not words["isError"]
    assert document["structuredContent"]["runs"][0]["gpu"] == "t4"
    assert error["isError"] and "cannot open nope" in error["content"][0]["text"]


def test_wrong_call():
    """a call with wrong arguments raises the SDK's exception with our sentence"""
    async def conversation(session):
        try:
            await session.call_tool("sim", {"path": ["x"], "colour": "red"})
        except Exception as error:
            return str(error)
    assert "no argument 'colour'" in run(conversation)[1]


def test_schemas():
    """the schemas are JSON schemas, and jsonschema finds real answers to be valid"""
    for command, words in (("sim", ["traces/decomfl.vct", "-g", "t4"]), ("gpus", []),
                           ("info", ["traces/decomfl.vct"]), ("diff", ["traces/decomfl.vct", "traces/attention.vct"])):
        schema = json.loads(subprocess.check_output([PROGRAM, "schema", command]))
        jsonschema.Draft202012Validator.check_schema(schema)
        done = subprocess.run([PROGRAM, command, "-q", "--json", *words], capture_output=True, text=True)
        jsonschema.validate(json.loads(done.stdout), schema)


tap.run({k: v for k, v in globals().items() if k.startswith("test_")})
