"""The RPC door."""

from musepi_tui.cli.headless import run_until_signal, tell_rescue
from musepi_tui.cli.rpc.server import RpcServer
from musepi_tui.runtime.options import RuntimeOptions
from musepi_tui.runtime.session import SessionRuntime


def run_rpc(options: RuntimeOptions) -> int:
    """Serves the host on stdin and stdout until it closes its side; the exit code."""
    return run_until_signal(_run(options))


async def _run(options: RuntimeOptions) -> int:
    async with SessionRuntime.open(options) as runtime:
        server = RpcServer(runtime)
        runtime.begin()
        code = await server.serve()
    return 1 if tell_rescue(runtime) else code
