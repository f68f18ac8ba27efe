package source

import (
	"bytes"
	"fmt"
	"os/exec"
	"testing"
)

// BenchmarkCheckout writes the 40,000 files of a revision. git has most of them as
// differences to others.
func BenchmarkCheckout(b *testing.B) {
	dir := b.TempDir()
	run(b, dir, "init", "-q")
	var in bytes.Buffer
	file := func(name, text string) { fmt.Fprintf(&in, "M 100644 inline %s\ndata %d\n%s\n", name, len(text), text) }
	in.WriteString("commit refs/heads/main\ncommitter a <a@example.com> 0 +0000\ndata 1\nx\n")
	file("cue.mod/module.cue", moduleText)
	for i := range 40_000 {
		text := "package platform\n"
		for line := range 30 {
			text += fmt.Sprintf("configuration: setting%d: value: %d\n", line, line*(i%(line+7)))
		}
		file(fmt.Sprintf("teams/%d/%d.cue", i%200, i), text)
	}
	cmd := exec.Command("git", "-C", dir, "fast-import", "--quiet")
	cmd.Stdin = &in
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	run(b, dir, "repack", "-q", "-a", "-d", "-f")
	run(b, dir, "read-tree", "main")
	run(b, dir, "checkout-index", "cue.mod/module.cue")
	for b.Loop() {
		_, remove, err := Checkout(b.Context(), dir, "main")
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := remove(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
