//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// The bounds that the environments exceed. They are small, because an evaluation that exceeds
// large bounds takes longer and needs more memory.
const (
	bombCPU    = 5 * time.Second
	bombMemory = 1 << 30
)

// bombs is the cost of builds of the sample platform with one environment that exceeds a bound.
type bombs struct {
	CPU    cost `json:"cpu"`
	Memory cost `json:"memory"`
}

// bomb is CUE that takes a year, or a tebibyte.
type bomb struct{ text, flag, bound string }

var (
	cpuBomb    = bomb{pairs, "--evaluation-cpu", bombCPU.String()}
	memoryBomb = bomb{doublings(20), "--evaluation-memory", fmt.Sprint(bombMemory)}
)

const pairs = `import "list"

_all: [for a in list.Range(0, 100000, 1) for b in list.Range(0, 100000, 1) {a * b}]
`

// doublings is a string that is four times as long each of some times: nothing else takes
// memory as fast, and copying one is not interrupted.
func doublings(times int) string {
	text := "_s0: \"0123456789abcdef\"\n"
	for i := range times {
		text += fmt.Sprintf("_s%d: _s%d + _s%d + _s%d + _s%d\n", i+1, i, i, i, i)
	}
	return text
}

func measureBombs(k *kalypso, work string) (*bombs, error) {
	var out bombs
	for name, b := range map[string]struct {
		bomb
		cost *cost
	}{"cpu": {cpuBomb, &out.CPU}, "memory": {memoryBomb, &out.Memory}} {
		dir := filepath.Join(work, "bomb-"+name)
		c, err := b.build(k, dir)
		if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
			return nil, fmt.Errorf("an environment beyond its %s: %w", name, err)
		}
		*b.cost = c
	}
	return &out, nil
}

// build builds the sample platform with the bomb in one environment, and checks that the other
// one is written.
func (b bomb) build(k *kalypso, dir string) (c cost, err error) {
	platform, out := filepath.Join(dir, "platform"), filepath.Join(dir, "out")
	if err := os.CopyFS(platform, os.DirFS(k.sample)); err != nil {
		return c, err
	}
	file := filepath.Join(platform, "environments", "dev", "bomb.cue")
	if err := os.WriteFile(file, []byte("package platform\n\n"+b.text), 0o644); err != nil {
		return c, err
	}
	c, _, err = costOf(k.command(filepath.Join(dir, "cache"), "-C", platform, "build", "--to", out, b.flag, b.bound))
	const hasErrors = 3 // the exit code
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != hasErrors {
		return c, errors.Join(errors.New("it is not refused"), err)
	}
	_, err = os.Stat(filepath.Join(out, "prod"))
	return c, err
}

// overBound is the approximate cost of such a build, as a multiple of the bound.
func overBound(of func(*bombs) float64) func(*report) (float64, bool) {
	return func(r *report) (float64, bool) {
		if r.Bombs == nil {
			return 0, false
		}
		return of(r.Bombs), true
	}
}
