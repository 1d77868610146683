"""The plainest relay with PyPI's websockets: two clients, and each one's messages go to the other."""

import asyncio

from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed


async def main() -> None:
    waiting: list = []

    async def client(socket) -> None:
        if not waiting:
            waiting.append((socket, asyncio.get_running_loop().create_future()))
            other = await waiting[0][1]
        else:
            other, found = waiting.pop()
            found.set_result(socket)
        try:
            async for message in socket:
                await other.send(message)
        except ConnectionClosed:
            pass

    options = {"compression": None, "max_size": None}
    async with serve(client, "127.0.0.1", 0, **options) as server:
        host, port = server.sockets[0].getsockname()[:2]
        print(f"{host}:{port}", flush=True)
        await asyncio.Future()


asyncio.run(main())
