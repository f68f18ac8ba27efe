package main

import (
	"context"
	"os"
	"syscall"
	"testing"
	"time"
)

func TestInterruptible(t *testing.T) {
	notices := func(ctx context.Context) int { <-ctx.Done(); return exitInterrupted }
	never := func(context.Context) int { select {} }
	for name, c := range map[string]struct {
		signals []os.Signal
		grace   time.Duration
		command func(context.Context) int
		want    int
	}{
		"no signal":                      {nil, time.Hour, func(context.Context) int { return 3 }, 3},
		"SIGINT":                         {[]os.Signal{os.Interrupt}, time.Hour, notices, 130},
		"SIGTERM":                        {[]os.Signal{syscall.SIGTERM}, time.Hour, notices, 143},
		"done in spite of it":            {[]os.Signal{os.Interrupt}, time.Hour, func(ctx context.Context) int { <-ctx.Done(); return 0 }, 0},
		"what cannot be cancelled":       {[]os.Signal{os.Interrupt}, 0, never, 130},
		"what cannot be cancelled, TERM": {[]os.Signal{syscall.SIGTERM}, 0, never, 143},
		"a second signal":                {[]os.Signal{syscall.SIGTERM, os.Interrupt}, time.Hour, never, 143},
	} {
		t.Run(name, func(t *testing.T) {
			signals := make(chan os.Signal, 2)
			for _, s := range c.signals {
				signals <- s
			}
			if got := interruptible(signals, c.grace, c.command); got != c.want {
				t.Errorf("exit code %d, want %d", got, c.want)
			}
		})
	}
}
