"""The RPC door."""

from musepi_tui.cli.headless import run_until_signal, with_runtime
from musepi_tui.cli.rpc.server import RpcServer
from musepi_tui.runtime.options import RuntimeOptions
from musepi_tui.runtime.session import SessionRuntime


def run_rpc(options: RuntimeOptions) -> int:
    """Serves the host on stdin and stdout until it closes its side; the exit code."""
    return run_until_signal(_run(options))


async def _run(options: RuntimeOptions) -> int:
    async def serve(runtime: SessionRuntime) -> int:
        server = RpcServer(runtime)
        runtime.begin()
        return await server.serve()

    code, unsaved = await with_runtime(options, serve)
    return 1 if unsaved else code
