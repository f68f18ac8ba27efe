// Command demo shows a hub at work. It makes a git server with the platform of examples/hub, a
// hub, and 200 simulated clusters that report to it, all on this machine. Then it promotes a
// release that breaks on 27 of 100 stores, and rolls it back: it prints each command that it runs
// with its output. Then the pages can be looked at until it is interrupted.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	end := flag.Bool("end", false, "end after the last command")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, options{out: os.Stdout, end: *end})
	interrupted := ctx.Err() != nil
	stop()
	if err != nil && !interrupted {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}
