// Command same compares the results of two programs kalypso, byte for byte: trees, records,
// diagnostics, JSON, exit codes and git refs. It builds all examples and random platforms with
// each of them, in a folder of the same name, and lets each promote the same random flows.
// .ci/same calls it with the program of an earlier commit and the present one.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "same:", err)
		os.Exit(1)
	}
}

func run() error {
	platforms := flag.Int("platforms", 50, "`number` of random platforms")
	flows := flag.Int("flows", 20, "`number` of random flows of promotion")
	driver := flag.String("driver", "", "the tests of cmd/kalypso as a `program`, which have the flows")
	only := flag.String("only", "", "compare only the case of this `name`")
	flag.Parse()
	if flag.NArg() != 2 {
		return fmt.Errorf("which two programs? same [flags] BEFORE NOW")
	}
	cases, err := examples()
	if err != nil {
		return err
	}
	for seed := range uint64(*platforms) {
		cases = append(cases, randomPlatform(seed))
	}
	for seed := range *flows {
		cases = append(cases, flow(*driver, seed+1))
	}
	work, err := os.MkdirTemp("", "same-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work) //nolint:errcheck // a temporary folder
	failed, compared := 0, 0
	for _, c := range cases {
		if *only != "" && c.name != *only {
			continue
		}
		compared++
		var said [2][]string
		for i, program := range flag.Args() {
			if said[i], err = c.record(filepath.Join(work, "case"), program); err != nil {
				return fmt.Errorf("%s with %s: %w", c.name, program, err)
			}
		}
		if differs := difference(said[0], said[1]); differs != "" {
			failed++
			fmt.Printf("%s: %s\n", c.name, differs)
		}
	}
	if failed > 0 || compared == 0 {
		return fmt.Errorf("%d of %d cases differ", failed, compared)
	}
	fmt.Printf("%d cases are the same\n", compared)
	return nil
}

// difference is the first line in which two recordings differ, with the command that it
// is about; "" if they do not.
func difference(before, now []string) string {
	command := ""
	for i := range max(len(before), len(now)) {
		was, is := "(nothing)", "(nothing)"
		if i < len(before) {
			was = before[i]
		}
		if i < len(now) {
			is = now[i]
		}
		if was != is {
			return fmt.Sprintf("%s\n\tbefore: %s\n\tnow:    %s", command, was, is)
		}
		if strings.HasPrefix(was, "$ ") {
			command = was
		}
	}
	return ""
}
