//go:build unix

package main

import (
	"fmt"
	"io"
	"time"
)

const row = "%11s  %-8s  %6s  %7s  %8s  %8s  %8s  %8s  %9s  %8s  %10s  %13s\n"

func printHeader(out io.Writer) {
	fmt.Fprintf(out, row, "assignments", "kind", "tuples", "files", "cpu", "system", "wall", "memory", "per cpu s", "cpu each", "cpu growth", "memory growth")
}

// printLine prints what a build cost, and how that grew since the size before,
// if there is one.
func printLine(out io.Writer, j job, c, before *cost) {
	cpuGrowth, memoryGrowth := "", ""
	if before != nil {
		cpuGrowth = fmt.Sprintf("%.2f", each(float64(c.cpu), c)/each(float64(before.cpu), before))
		memoryGrowth = fmt.Sprintf("%.2f", each(float64(c.memory), c)/each(float64(before.memory), before))
	}
	fmt.Fprintf(out, row,
		fmt.Sprint(c.Assignments), j.kind(), fmt.Sprint(c.Tuples), fmt.Sprint(c.Files),
		seconds(c.cpu), seconds(c.system), seconds(c.wall),
		fmt.Sprintf("%d MiB", c.memory>>20),
		fmt.Sprintf("%.0f", float64(c.Assignments)/c.cpu.Seconds()),
		fmt.Sprintf("%.0f µs", each(float64(c.cpu)/float64(time.Microsecond), c)),
		cpuGrowth, memoryGrowth)
}

func each(total float64, c *cost) float64 { return total / float64(c.Assignments) }

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
