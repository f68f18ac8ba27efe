//go:build unix

package main

import (
	"fmt"
	"io"
)

const carriedRow = "%-44s %9s %9s %10s %9s %10s %10s\n"

func printCarriedHead(out io.Writer, what string) {
	fmt.Fprintf(out, carriedRow, what, "cpu", "wall", "peak", "requests", "sent", "received")
}

func printCarried(out io.Writer, name string, c carried) {
	fmt.Fprintf(out, carriedRow, name, seconds(c.CPU), seconds(c.Wall), mebibytes(c.Memory),
		fmt.Sprint(c.Requests), kibibytes(c.Sent), kibibytes(c.Received))
}

// printPromotions prints the costs of promotions and of git with a work tree.
func printPromotions(out io.Writer, p *promotions) {
	if p == nil {
		return
	}
	fmt.Fprintf(out, "\nPromotions into a branch of %s files\n\n", thousands(p.Files))
	printCarriedHead(out, "work")
	printCarried(out, "the first, all of it compiled", p.First)
	for _, m := range p.Steps {
		files := thousands(m.Files) + " files"
		printCarried(out, files+", fetched and compiled before", m.Warm)
		printCarried(out, files+", compiled before", m.Fetched)
		if m.Cold != nil {
			printCarried(out, files+", nothing remembered", *m.Cold)
		}
		printCarried(out, files+", git with a work tree", m.Git)
	}
	fmt.Fprintf(out, "\n%-44s %9s %9s %10s %9s\n", "ratios", "cpu", "wall", "peak", "bytes")
	for _, m := range p.Steps {
		files := thousands(m.Files) + " files"
		printOver(out, files+" : git", m.Warm, m.Git)
		printOver(out, files+", empty store : git", m.Fetched, m.Git)
	}
}

func printOver(out io.Writer, name string, a, b carried) {
	ratio := func(a, b float64) string { return fmt.Sprintf("%.2g", a/b) }
	fmt.Fprintf(out, "%-44s %9s %9s %10s %9s\n", name, ratio(a.CPU, b.CPU), ratio(a.Wall, b.Wall),
		ratio(float64(a.Memory), float64(b.Memory)), ratio(float64(a.bytes()), float64(b.bytes())))
}

// printFleet prints the costs of finding commits.
func printFleet(out io.Writer, f *fleet) {
	if f == nil {
		return
	}
	fmt.Fprintf(out, "\nStatus of %d environments in %d repositories\n\n", f.Environments, f.Repositories)
	printCarriedHead(out, "work")
	printCarried(out, "status, empty store", f.Cold)
	printCarried(out, "status, fetched before", f.Warm)
	printCarried(out, "git ls-remote, of each repository", f.LsRemote)
}

func kibibytes(n int64) string { return fmt.Sprintf("%d KiB", (n+1023)>>10) }

// printLocal prints the costs of promotions between folders.
func printLocal(out io.Writer, l *local) {
	fmt.Fprintf(out, "\n%-44s %9s %9s %10s %10s\n", "Promotions between folders, with git's part",
		"cpu", "wall", "peak", "own")
	row := func(name string, c cost) {
		fmt.Fprintf(out, "%-44s %9s %9s %10s %10s\n", name, seconds(c.CPU), seconds(c.Wall),
			mebibytes(c.Memory), mebibytes(c.Own))
	}
	if l.Files > 0 {
		row(fmt.Sprintf("%s of %s files", thousands(l.Changed), thousands(l.Files)), l.One)
	}
	if l.All != nil {
		row(fmt.Sprintf("a chain of %d environments, in one run", l.Chain), *l.All)
	}
}
