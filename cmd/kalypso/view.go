package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/cli/go-gh/v2/pkg/browser"
	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/regular"
	"github.com/kalypso-io/kalypso/view"
	viewplatform "github.com/kalypso-io/kalypso/view/platform"
)

// viewOptions are the flags of view.
type viewOptions struct {
	to, since, listen string
	full, open, poll  bool
}

func isFolder(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// head is the commit that changes are counted from, unless a flag names another one.
const head = "HEAD"

// viewAddress is the address of view, unless it is in use or a flag sets another one.
const viewAddress = "localhost:8787"

func newView(g inspector) *cobra.Command {
	o := &viewOptions{}
	cmd := &cobra.Command{
		Use:   "view [ENVIRONMENT...]",
		Short: "Show the platform as pages, live or in one file",
		Long: `view serves pages on this machine: what runs where with which version, each
assignment with its objects and values and where these come from, cluster types,
clusters, scheduling policies, the configuration graph, what is wrong, how
environments differ, and what has changed since a commit. When a file of the
platform changes, it compiles again, and the pages that are open follow. It ends
when it is interrupted; the exit code is then 130.

With --to it writes one file of HTML instead, which needs no server and no network.
It has these pages but for those of single clusters and of what is not assigned, and
a page for one assignment of each group of equal ones, and for 4,000 of these groups;
with --full it has one for each assignment.

The server answers on a loopback address alone, and knows no users.`,
		Example: `  kalypso view
  kalypso view dev prod --open
  kalypso view --to fleet.html --since v1.4.0`,
		RunE: func(cmd *cobra.Command, environments []string) error {
			if err := o.check(g.console, cmd); err != nil {
				return err
			}
			return g.withCache(func(c *cache.Cache) error {
				if o.to != "" {
					return g.viewFile(cmd.Context(), environments, o, c)
				}
				return g.viewLive(cmd.Context(), environments, o, c)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.to, "to", "", "write one file of HTML to `FILE`, and serve nothing")
	f.BoolVar(&o.full, "full", false, "have the details of all assignments in the file")
	f.StringVar(&o.since, "since", head, "git `REV` that changes are counted from")
	f.StringVar(&o.listen, "listen", viewAddress,
		"serve on the loopback `ADDRESS`; port 0 is a free one")
	f.BoolVar(&o.open, "open", false, "open a browser")
	f.BoolVar(&o.poll, "poll", false,
		"look for changes of files, instead of asking the system to tell of them")
	return cmd
}

// check returns an error if the flags are wrong, and resolves the path of --to.
func (o *viewOptions) check(g *console, cmd *cobra.Command) error {
	changed := cmd.Flags().Changed
	switch {
	case changed("to") && o.to == "":
		return usagef("--to needs a value, and is empty")
	case o.full && o.to == "":
		return usagef("--full says what is in a file: it needs --to FILE")
	case o.to != "" && (changed("listen") || o.open || o.poll):
		return usagef("--listen, --open and --poll are for serving pages: leave them out, or --to")
	}
	if o.to != "" {
		o.to = g.path(o.to)
		if isFolder(o.to) {
			return usagef("--to %s is a folder: name a file in it", o.to)
		}
		if dir := filepath.Dir(o.to); !isFolder(dir) {
			return usagef("--to %s: there is no folder %s", o.to, dir)
		}
		return nil
	}
	host, _, err := net.SplitHostPort(o.listen)
	if err != nil {
		return usagef("--listen %s is no address such as %s", o.listen, viewAddress)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return usagef("--listen %s is not on this machine alone: pages have no access control; use "+
			"localhost, or write a file with --to", o.listen)
	}
	return nil
}

// pages returns the source of pages of a build, which is valid until close is called. Its error
// is about the revision of --since.
func (g inspector) pages(ctx context.Context, b *compiler.Build, r compiler.Request,
	o *viewOptions) (pages *viewplatform.Platform, close func() error, err error) {
	options := viewplatform.Options{Title: strings.TrimSuffix(b.Platform.Module, "@v0")}
	if o.to == "" { // equal platforms give equal files
		options.Built = time.Now()
	}
	repo, err := git.Discover(b.Platform.Root)
	if err != nil && o.since != head {
		return nil, nil, usagef("--since %s: the platform is in no git repository", o.since)
	} else if err != nil { // in no repository
		pages, err = viewplatform.New(ctx, b, options)
		return pages, func() error { return nil }, err
	}
	if id, err := repo.Resolve(head); err == nil {
		options.Commit = id.String()[:12]
		folder, _ := filepath.Rel(repo.WorkTree(), resolved(b.Platform.Root))
		options.Link = viewplatform.Linker(repo.RemoteURL("origin"), os.Getenv, id.String(),
			filepath.ToSlash(folder),
			viewplatform.AsCommitted(repo, id, b.Platform.Root, filepath.ToSlash(folder)))
	}
	if _, err := repo.Resolve(o.since); err == nil {
		options.Since, options.Compare = o.since, viewplatform.CompareWith(r)
	} else if o.since != head { // without a commit there is no HEAD
		return nil, nil, errors.Join(err, repo.Close())
	}
	if pages, err = viewplatform.New(ctx, b, options); err != nil {
		return nil, nil, errors.Join(err, repo.Close())
	}
	return pages, repo.Close, nil
}

// viewFile compiles once and writes a file.
func (g inspector) viewFile(ctx context.Context, environments []string, o *viewOptions,
	c *cache.Cache) (err error) {
	r := g.request(environments, c)
	b, err := g.compileRequest(ctx, r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	pages, done, err := g.pages(ctx, b, r, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	var out bytes.Buffer
	if err := view.WriteFile(ctx, &out, pages, view.FileOptions{Full: o.full}); err != nil {
		return err
	}
	if err := regular.Replace(o.to, out.Bytes(), 0o644); err != nil {
		return err
	}
	fmt.Fprintf(g.err, "%s written, %.1f MB\n", o.to, float64(out.Len())/1e6)
	return g.reportErrors(b)
}

// viewLive serves pages, and compiles again whenever a file changes.
func (g inspector) viewLive(ctx context.Context, environments []string, o *viewOptions,
	c *cache.Cache) error {
	root, err := source.Root(g.dir)
	if err != nil {
		return err
	}
	w, err := watchPlatform(root, nil, o.poll,
		func(err error) { fmt.Fprintf(g.err, "kalypso: %v\n", err) })
	if err != nil {
		return err
	}
	defer w.Close()
	listener, err := o.listenOn(ctx)
	if err != nil {
		return err
	}
	feed := &view.Feed{}
	server := &http.Server{Handler: view.Handler(feed), ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	ctx, end := context.WithCancelCause(ctx)
	go func() { end(server.Serve(listener)) }()
	defer func() {
		_ = server.Close() // it ends with the command
		feed.Close()
	}()
	for first := true; ; first = false {
		err := g.compileInto(ctx, feed, root, environments, o, c)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil && first {
			return err
		}
		if err != nil {
			fmt.Fprintf(g.err, "kalypso: %v\n", err)
			feed.Fail(err.Error())
		}
		if first {
			address := "http://" + listener.Addr().String() + "/"
			if _, err := fmt.Fprintln(g.out, address); err != nil {
				return err
			}
			if o.open {
				if err := browser.New("", g.err, g.err).Browse(address); err != nil {
					fmt.Fprintf(g.err, "kalypso: no browser was opened: %v\n", err)
				}
			}
		}
		g.supervisor.MayBeginAgain(true) // as watch does
		c.Flush()
		if err := w.Next(ctx); err != nil {
			return cmp.Or(context.Cause(ctx), err)
		}
	}
}

// listenOn listens on the address of the flag. If the default address is in use, it listens on a
// free port.
func (o *viewOptions) listenOn(ctx context.Context) (net.Listener, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", o.listen)
	if errors.Is(err, syscall.EADDRINUSE) && o.listen == viewAddress {
		return config.Listen(ctx, "tcp", "localhost:0")
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, usagef(
			"--listen %s: another program listens there; name another port, or 0 for a free one", o.listen)
	}
	return listener, err
}

// compileInto compiles the platform and lets pages show it.
func (g inspector) compileInto(ctx context.Context, feed *view.Feed, root string,
	environments []string, o *viewOptions, c *cache.Cache) error {
	r, begin := g.request(environments, c), time.Now()
	r.Dir = root
	b, err := compiler.Compile(ctx, r)
	if err != nil {
		return err
	}
	pages, done, err := g.pages(ctx, b, r, o)
	if err != nil {
		return errors.Join(err, b.Close())
	}
	// closes open files, and removes temporary ones
	feed.Set(pages, func() { _ = errors.Join(done(), b.Close()) })
	fmt.Fprintf(g.err, "compiled in %s: %s\n", time.Since(begin).Round(time.Millisecond),
		counted(b.Diagnostics))
	return nil
}
