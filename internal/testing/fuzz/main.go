// Command fuzz runs every fuzz target of the module for a while, one after the other, and prints
// the number of inputs that each has tried. With -write it writes the numbers to docs/fuzzing.md.
// If an input fails a target, it is stored in testdata/fuzz next to the target, and the exit code
// is 1.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

func main() {
	each := flag.Duration("each", 3*time.Second, "how long each target runs")
	match := flag.String("match", "", "run the targets alone whose PACKAGE.NAME matches this expression")
	dependencies := flag.Bool("dependencies", false, "look for inputs that reach new code of dependencies, too")
	write := flag.Bool("write", false, "write "+page)
	flag.Parse()
	if err := run(*each, *match, *dependencies, *write); err != nil {
		fmt.Fprintln(os.Stderr, "fuzz:", err)
		os.Exit(1)
	}
}

func run(each time.Duration, match string, dependencies, write bool) error {
	wanted, err := regexp.Compile(match)
	if err != nil {
		return err
	}
	targets, err := find(".")
	if err != nil {
		return err
	}
	binaries, err := os.MkdirTemp("", "fuzz-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(binaries)
	corpora, err := corpusFolder()
	if err != nil {
		return err
	}
	var errs []error
	var done []target
	built := built{}
	for _, t := range targets {
		if !wanted.MatchString(t.dir + "." + t.name) {
			continue
		}
		binary := filepath.Join(binaries, filepath.Base(t.dir)+".test")
		if err := built.build(t.dir, binary, dependencies); err != nil {
			return err
		}
		t.rate, err = t.run(binary, filepath.Join(corpora, t.importPath()), each)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s in %s: %w", t.name, t.dir, err))
		}
		fmt.Printf("%-60s %8d/s\n", t.dir+"."+t.name, t.rate)
		done = append(done, t)
	}
	if write {
		errs = append(errs, writePage(done, each))
	}
	return errors.Join(errs...)
}
