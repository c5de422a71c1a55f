"""A small OpenAI-compatible HTTP server: what other tools' clients need (models, chat, answers in one piece).

``python tests/agent/local_engine.py --port 8000`` prints its port and serves until it is ended. Each request gets
``max_tokens`` tokens (or ``max_completion_tokens``), the first after ``--first-token-ms``, the others every
``--token-ms``. Usage is reported when the client asks for it.
"""

import argparse
import asyncio
import json
from typing import Any


class LocalEngine:
    """Serve until closed; ``port`` is the bound port."""

    def __init__(self, first_token_s: float = 0.02, token_s: float = 0.01, model: str = "local-model") -> None:
        self.first_token_s = first_token_s
        self.token_s = token_s
        self.model = model
        self.port = 0
        self.served = 0
        self._server: asyncio.Server | None = None

    async def start(self, port: int = 0) -> None:
        self._server = await asyncio.start_server(self._connection, "127.0.0.1", port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()

    async def serve_forever(self) -> None:
        assert self._server is not None
        await self._server.serve_forever()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._request(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        request_line, *header_lines = head.decode("latin-1").split("\r\n")
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in header_lines) if k}
        if "chunked" in headers.get("transfer-encoding", ""):
            body = await self._chunked(reader)
        else:
            body = await reader.readexactly(int(headers.get("content-length", "0")))
        path = request_line.split(" ")[1].split("?")[0]
        if path.rstrip("/").endswith("/completions"):
            await self._complete(path, json.loads(body), writer)
        elif path == "/v1/models":
            self._json(writer, {"object": "list", "data": [{"id": self.model, "object": "model"}]})
        else:
            self._json(writer, {"status": "ok"})
        await writer.drain()
        return headers.get("connection", "").lower() != "close"

    @staticmethod
    async def _chunked(reader: asyncio.StreamReader) -> bytes:
        body = b""
        while size := int((await reader.readline()).strip() or b"0", 16):
            body += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
        return body

    @staticmethod
    def _json(writer: asyncio.StreamWriter, value: Any) -> None:
        body = json.dumps(value).encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)

    async def _complete(self, path: str, request: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        chat = path.rstrip("/").endswith("chat/completions")
        tokens = int(request.get("max_completion_tokens") or request.get("max_tokens") or 16)
        prompt = request.get("prompt") or " ".join(str(m.get("content")) for m in request.get("messages", []))
        prompt_tokens = len(prompt) if isinstance(prompt, list) else len(str(prompt).split())
        usage = {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": tokens,
            "total_tokens": prompt_tokens + tokens,
        }
        base = {"id": "cmpl-1", "object": "chat.completion.chunk" if chat else "text_completion", "model": self.model}
        self.served += 1
        if not request.get("stream"):
            await asyncio.sleep(self.first_token_s + self.token_s * (tokens - 1))
            text = " ".join(["a"] * tokens)
            choice = {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
            self._json(writer, base | {"choices": [choice | {"index": 0, "finish_reason": "length"}], "usage": usage})
            return
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        delta = {"delta": {"content": "a "}} if chat else {"text": "a "}
        frame = self._frame(base | {"choices": [delta | {"index": 0, "finish_reason": None}]})
        due = asyncio.get_running_loop().time() + self.first_token_s
        for _ in range(tokens):
            await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))
            writer.write(frame)
            await writer.drain()
            due += self.token_s
        if (request.get("stream_options") or {}).get("include_usage"):
            writer.write(self._frame(base | {"choices": [], "usage": usage}))
        writer.write(self._chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")

    @classmethod
    def _frame(cls, event: dict[str, Any]) -> bytes:
        return cls._chunk(b"data: " + json.dumps(event).encode() + b"\n\n")

    @staticmethod
    def _chunk(data: bytes) -> bytes:
        return f"{len(data):x}\r\n".encode() + data + b"\r\n"


async def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--first-token-ms", type=float, default=20.0)
    parser.add_argument("--token-ms", type=float, default=10.0)
    parser.add_argument("--model", default="local-model")
    arguments = parser.parse_args()
    engine = LocalEngine(arguments.first_token_ms / 1e3, arguments.token_ms / 1e3, arguments.model)
    await engine.start(arguments.port)
    print(engine.port, flush=True)
    await engine.serve_forever()


if __name__ == "__main__":
    asyncio.run(_main())
