package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/query/database"
	"github.com/kalypso-io/kalypso/compiler/query/tables"
	"github.com/kalypso-io/kalypso/internal/git/remote"
	"github.com/kalypso-io/kalypso/promotion"
)

// queryOptions are the flags of query.
type queryOptions struct {
	to, at, git string
	history     int
}

func newQuery(g inspector) *cobra.Command {
	o := &queryOptions{}
	cmd := &cobra.Command{
		Use:   "query [TABLE] [ENVIRONMENT...]",
		Short: "Give everything as tables, for one's own dashboards",
		Long: `query gives what is known of the compiled platform as tables: what runs where, every
value with where it came from, versions, clusters, what is wrong, and the history of
GitOps branches. Without arguments it lists the tables and their columns.

Of a table it prints a JSON object for each row, on a line of its own. With --to it
writes all tables, or those that are named before the environments, into a SQLite
file, with views of them. A file is replaced at once, and only if kalypso wrote it.

The table history is read from the records in the environments' GitOps branches, as
audit does, and therefore only with --history; --git names a copy of the repository
that is at hand. It is empty for environments that have no gitops in a git repository.

What is wrong with the platform is printed on stderr; the exit code is then 3, and
the tables have what can be known.`,
		Example: `  kalypso query
  kalypso query versions prod
  kalypso query --to fleet.db
  kalypso query --to fleet.db --history 100
  kalypso query --to fleet.db --at v1.4.0
  kalypso query assignments versions dev --to fleet.db`,
	}
	cmd.Flags().StringVar(&o.to, "to", "", "write the tables into the SQLite database `FILE`, whose "+
		"name ends with .db or .sqlite")
	cmd.Flags().StringVar(&o.at, "at", "",
		"git `REV` of the platform to compile, instead of what is in its folder")
	cmd.Flags().IntVar(&o.history, "history", 0, "read this many of the newest commits of each "+
		"GitOps branch for the table history")
	cmd.Flags().StringVar(&o.git, "git", "", "read the history from the git repository in `DIR`, "+
		"instead of those that the environments' gitops name")
	completeFlag(cmd, "to", g.complete().files("db", "sqlite"))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		of, environments, err := o.check(args)
		switch {
		case errors.As(err, new(*unknownTableError)):
			return g.noTable(cmd.Context(), args[0], err)
		case err != nil:
			return err
		case len(of) == 0:
			// Print the tables with their columns.
			return g.wrapped(func(w *tabwriter.Writer) {
				for i, t := range tables.All() {
					if i > 0 {
						fmt.Fprintln(w)
					}
					fmt.Fprintf(w, "%s: %s\n", t.Name, strings.TrimSuffix(t.Doc, "."))
					for _, c := range t.Columns {
						fmt.Fprintf(w, "  %s\t%s\t%s\n", c.Name, c.Type, c.Doc)
					}
				}
			})
		}
		return g.withCache(
			func(c *cache.Cache) error { return g.query(cmd.Context(), c, o, of, environments) })
	}
	return cmd
}

// check returns the tables and environments that arguments name; no tables for the list of
// them.
func (o *queryOptions) check(args []string) (of []*tables.Table, environments []string, err error) {
	switch {
	case o.history < 0:
		return nil, nil, usagef("--history %d: it is how many commits", o.history)
	case o.git != "" && o.history == 0:
		return nil, nil,
			usagef("--git is where --history reads commits: say how many, as in --history 100")
	case o.to == "" && len(args) == 0 && o.history > 0:
		return nil, nil, usagef("--history is for the table history, and without arguments the tables "+
			"are listed: kalypso query history --history %d", o.history)
	case o.to == "" && len(args) == 0:
		return nil, nil, nil
	case o.to != "" && !slices.Contains([]string{".db", ".sqlite", ".sqlite3"}, filepath.Ext(o.to)):
		return nil, nil,
			usagef("--to %s: it writes a SQLite database, whose name ends with .db or .sqlite", o.to)
	}
	for len(args) > 0 && (o.to != "" || len(of) == 0) {
		t, err := tables.Find(args[0])
		if err != nil &&
			slices.ContainsFunc(database.Views(), func(v database.View) bool { return v.Name == args[0] }) {
			return nil, nil, usagef("%s is a view, and views are in the file that --to writes, as in "+
				"kalypso query --to fleet.db", args[0])
		}
		if err != nil && o.to == "" {
			return nil, nil, usageError{&unknownTableError{err}}
		}
		if err != nil {
			break // it is an environment
		}
		if t.Name == tables.History && o.history == 0 {
			return nil, nil,
				usagef("how much history? Give a number of commits, as in kalypso query history --history 100")
		}
		of, args = append(of, t), args[1:]
	}
	if len(of) == 0 {
		of = tables.All()
	}
	if o.history > 0 && !hasHistory(of) {
		return nil, nil,
			usagef("--history is for the table history, which is not among those that are named")
	}
	return of, args, nil
}

// unknownTableError is that there is no table of a name.
type unknownTableError struct{ error }

// noTable returns the error for an argument that names no table, and may name an environment.
func (g inspector) noTable(ctx context.Context, name string, err error) error {
	found := false
	// If the environments cannot be read, there is still no such table.
	_ = g.withCache(func(c *cache.Cache) error {
		all, _, err := g.readDeclarations(ctx, c)
		found = slices.ContainsFunc(all, func(d model.Declaration) bool { return d.Name == name })
		return err
	})
	if found {
		return usagef(
			"%s is an environment, and the table comes first, as in kalypso query assignments %[1]s", name)
	}
	return err
}

func hasHistory(of []*tables.Table) bool {
	return slices.ContainsFunc(of, func(t *tables.Table) bool { return t.Name == tables.History })
}

// query compiles the environments and writes the tables.
func (g inspector) query(ctx context.Context, c *cache.Cache, o *queryOptions, of []*tables.Table,
	environments []string) (err error) {
	if o.to != "" {
		if err := database.Check(g.path(o.to)); err != nil {
			return err // before it takes time
		}
	}
	if o.git != "" {
		if info, err := os.Stat(g.path(o.git)); err != nil || !info.IsDir() {
			return usagef("--git %s: there is no such folder", o.git)
		}
	}
	r := g.request(environments, c)
	r.Revision = o.at
	b, err := g.compileRequest(ctx, r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	s := &tables.Source{Build: b, Dir: g.dir, Revision: o.at}
	write := func() error {
		if o.to == "" {
			out := bufio.NewWriter(g.out)
			err := of[0].Rows(ctx, s, func(cells []any) error { return of[0].WriteLine(out, cells) })
			if err != nil {
				return err
			}
			return out.Flush()
		}
		return database.Write(ctx, g.path(o.to), s, of)
	}
	if o.readsHistory(of, b.Declarations) {
		err = g.withHistory(ctx, c, o, environments, func(session *promotion.Session) error {
			s.Changes = func(ctx context.Context, f func(tables.Change) error) error {
				return session.Changes(ctx, o.history, f)
			}
			return write()
		})
	} else {
		err = write()
	}
	if err != nil {
		return err
	}
	return g.reportErrors(b)
}

// readsHistory reports whether a table needs the history of branches, and such branches exist.
func (o *queryOptions) readsHistory(of []*tables.Table, declarations []model.Declaration) bool {
	return o.history > 0 && hasHistory(of) &&
		slices.ContainsFunc(declarations,
			func(d model.Declaration) bool { return d.GitOps != nil && d.GitOps.Repo != "" })
}

// withHistory calls a function with a session that reads histories. It uses the platform's
// repository in the folder, and sends no requests to a forge.
func (g inspector) withHistory(ctx context.Context, c *cache.Cache, o *queryOptions,
	environments []string, use func(*promotion.Session) error) error {
	r, err := promoter(g).promotionRequest(&promotionOptions{environments: environments, local: true,
		former: true, forge: "none"}, c)
	if err != nil {
		return err
	}
	if open := r.Remote; o.git != "" {
		dir, err := filepath.Abs(g.path(o.git))
		if err != nil {
			return err
		}
		r.Remote = func(ctx context.Context, url string) (*remote.Remote, error) {
			if url != r.Repository {
				url = dir
			}
			return open(ctx, url)
		}
	}
	return promoter(g).once(ctx, r,
		func(_ context.Context, s *promotion.Session) error { return use(s) })
}
