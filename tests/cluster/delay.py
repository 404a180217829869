"""A slow way to a host: python3 delay.py MS ADDRESS PORT... takes connections to 127.0.0.1 at these ports and
carries what they send to ADDRESS, and what comes back, each byte so many milliseconds late."""

import asyncio
import sys


async def carry(source, sink, delay_s):
    """All that is sent, and then its end: the other way may go on."""
    now = asyncio.get_running_loop().time
    under_way = asyncio.Queue()

    async def deliver():
        while True:
            due, sent = await under_way.get()
            await asyncio.sleep(due - now())
            if not sent:
                return sink.write_eof()
            sink.write(sent)
            await sink.drain()

    delivers = asyncio.create_task(deliver())
    sent = b"?"
    while sent:  # as fast as it comes: what is under way does not slow what follows
        sent = await source.read(1 << 20)
        under_way.put_nowait((now() + delay_s, sent))
    await delivers


async def forward(reader, writer, address, port, delay_s):
    try:
        far_reader, far_writer = await asyncio.open_connection(address, port)
    except OSError:
        return writer.close()
    ways = [(reader, far_writer), (far_reader, writer)]
    await asyncio.gather(*(carry(*way, delay_s) for way in ways), return_exceptions=True)
    writer.close()
    far_writer.close()


async def main(delay_ms, address, *ports):
    for port in map(int, ports):
        await asyncio.start_server(
            lambda reader, writer, port=port: forward(reader, writer, address, port, delay_ms / 1000),
            "127.0.0.1", port,
        )
    await asyncio.Event().wait()


asyncio.run(main(int(sys.argv[1]), *sys.argv[2:]))
