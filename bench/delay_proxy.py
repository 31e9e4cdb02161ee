"""A TCP proxy that makes a near server far: bytes arrive half a round trip later in each direction, and only so many of a
connection are on their way to the client at once, as a TCP window would have it."""

import asyncio
import threading
import time


class DelayProxy:
    """with DelayProxy(to=8080, rtt=0.05, window=1 << 20) as port: …"""

    def __init__(self, to, rtt, window):
        self.to, self.half, self.window = to, rtt / 2, window
        self.loop = asyncio.new_event_loop()

    def __enter__(self):
        started = threading.Event()
        self.thread = threading.Thread(target=self.run, args=(started,), daemon=True)
        self.thread.start()
        started.wait()
        return self.port

    def __exit__(self, *_):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()

    def run(self, started):
        asyncio.set_event_loop(self.loop)
        server = self.loop.run_until_complete(asyncio.start_server(self.serve, "127.0.0.1", 0, limit=1 << 22))
        self.port = server.sockets[0].getsockname()[1]
        started.set()
        self.loop.run_forever()

    async def serve(self, reader, writer):
        await asyncio.sleep(2 * self.half)  # the handshake
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self.to, limit=1 << 22)
        await asyncio.gather(self.pump(reader, up_writer, 1 << 30), self.pump(up_reader, writer, self.window), return_exceptions=True)

    async def pump(self, reader, writer, window):
        """Reads as long as the window has room; each block is delivered when its time has come, and frees its room a half
        round trip later, when the other side would hear of it."""
        queue, room = asyncio.Queue(), asyncio.Semaphore(max(1, window >> 16))

        async def free():
            await asyncio.sleep(self.half)
            room.release()

        async def deliver():
            while True:
                when, block = await queue.get()
                if block is None:
                    return writer.close()
                await asyncio.sleep(max(0, when - time.monotonic()))
                writer.write(block)
                await writer.drain()
                asyncio.ensure_future(free())

        delivering = asyncio.ensure_future(deliver())
        try:
            while True:
                await room.acquire()
                block = await reader.read(1 << 16)
                if not block:
                    break
                queue.put_nowait((time.monotonic() + self.half, block))
        finally:
            queue.put_nowait((0, None))
            await delivering
