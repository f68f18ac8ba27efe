package main

import (
	"context"
	"io"
	"os"

	"golang.org/x/term"

	"github.com/kalypso-io/kalypso/cmd/kalypso/internal/progress"
	"github.com/kalypso-io/kalypso/compiler"
)

// sizeOf returns what tells the columns and rows of the terminal that w is; nil
// for what is none, or cannot do more than print.
func sizeOf(w io.Writer) func() (columns, rows int) {
	if p, isOurs := w.(printing); isOurs {
		w = p.Writer
	}
	f, isFile := w.(*os.File)
	if !isFile || os.Getenv("TERM") == "dumb" || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return func() (int, int) {
		columns, rows, err := term.GetSize(int(f.Fd()))
		if err != nil || columns == 0 || rows == 0 { // some consoles do not know
			return 80, 24
		}
		return columns, rows
	}
}

// The values of --progress.
const (
	progressAuto  = "auto"
	progressPlain = "plain"
	progressNone  = "none"
)

// showProgress lets a request tell on stderr how far it is, until stop is called
// or the context ends. What else is written must wait for stop.
func (g *global) showProgress(ctx context.Context, r *compiler.Request) (stop func()) {
	o := progress.Options{Out: g.err}
	switch g.progress {
	case progressNone:
		return func() {}
	case progressAuto:
		o.Size = sizeOf(g.err)
	}
	d := progress.Start(o)
	r.Progress = d.Report
	forget := context.AfterFunc(ctx, d.Stop)
	g.display.Store(d)
	return func() {
		forget()
		d.Stop()
	}
}

// stopProgress stops what showProgress has begun.
func (g *global) stopProgress() {
	if d := g.display.Load(); d != nil {
		d.Stop()
	}
}
