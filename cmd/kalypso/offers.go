package main

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/application"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/query"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/internal/apiserver"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion/subject"
)

// nameValues completes with names of items of the platform.
func nameValues[T any](g completer, of func(*compiler.Build) []T,
	name func(T) string) cobra.CompletionFunc {
	return g.evaluated(func(b *compiler.Build) (out []string) {
		for _, item := range of(b) {
			out = append(out, name(item))
		}
		return out
	})
}

// evaluated completes with names of the platform, sorted.
func (g completer) evaluated(names func(*compiler.Build) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, prefix string) ([]cobra.Completion,
		cobra.ShellCompDirective) {
		return g.offer(cmd, prefix, func(ctx context.Context, r compiler.Request) ([]string, error) {
			b, err := compiler.Evaluate(ctx, r)
			if err != nil {
				return nil, err
			}
			defer b.Close() //nolint:errcheck // a temporary folder is left
			out := names(b)
			slices.Sort(out)
			return slices.Compact(out), nil
		})
	}
}

// declarations returns the environments of the platform, or of the application, in the folder of
// the command. If the base cannot be read, it returns the environments that have folders. The
// environments of another repository are not known.
func (g completer) declarations(ctx context.Context, cmd *cobra.Command,
	r compiler.Request) (found []model.Declaration, err error) {
	if repository := cmd.Flag("repo"); repository != nil && repository.Changed {
		return nil, nil
	}
	root := g.dir
	if application.Is(root) {
		found, _, err = subject.Application(application.Request{Workers: g.workers,
			Supervisor: g.supervisor}).Declarations(ctx, root)
	} else if root, err = source.Root(root); err == nil {
		found, _, err = compiler.Declarations(ctx, r)
	}
	if len(found) > 0 || err != nil {
		return found, err
	}
	entries, err := os.ReadDir(filepath.Join(root, source.Environments))
	for _, e := range entries {
		if e.IsDir() && model.IsName(e.Name()) {
			found = append(found, model.Declaration{Name: e.Name()})
		}
	}
	return found, err
}

// environmentNames completes the names of environments.
func (g completer) environmentNames(cmd *cobra.Command, _ []string,
	prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return g.offer(cmd, prefix,
		func(ctx context.Context, r compiler.Request) (names []string, _ error) {
			found, err := g.declarations(ctx, cmd, r)
			for _, d := range found {
				names = append(names, d.Name)
			}
			return names, err
		})
}

// rings completes the rings of the environments that are given, or of all.
func (g completer) rings(cmd *cobra.Command, given []string, prefix string) ([]cobra.Completion,
	cobra.ShellCompDirective) {
	if flag, err := cmd.Flags().GetStringSlice("env"); err == nil {
		given = append(given, flag...)
	}
	return g.offer(cmd, prefix, func(ctx context.Context, r compiler.Request) ([]string, error) {
		var names []string
		found, err := g.declarations(ctx, cmd, r)
		for _, d := range found {
			for _, ring := range d.Promotion.Rings {
				if (len(given) == 0 || slices.Contains(given, d.Name)) && !slices.Contains(names, ring.Name) {
					names = append(names, ring.Name)
				}
			}
		}
		return names, err
	})
}

// explained completes assignments, or codes of diagnostics, and then the keys of an assignment's
// values.
func (g completer) explained(cmd *cobra.Command, given []string, prefix string) ([]cobra.Completion,
	cobra.ShellCompDirective) {
	switch {
	case len(given) > 1:
		return nil, cobra.ShellCompDirectiveNoFileComp
	case len(given) == 1:
		return g.keys(cmd, given[0], prefix)
	case strings.HasPrefix(prefix, "K"):
		var codes []cobra.Completion
		for _, c := range diag.Codes {
			if strings.HasPrefix(string(c.Code), prefix) {
				codes = append(codes, cobra.CompletionWithDesc(string(c.Code), c.Title))
			}
		}
		return codes, cobra.ShellCompDirectiveNoFileComp
	}
	return g.assignmentIDs(cmd, given, prefix)
}

// assignmentIDs completes assignments.
func (g completer) assignmentIDs(cmd *cobra.Command, given []string,
	prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return g.evaluated(func(b *compiler.Build) (ids []string) {
		for _, e := range b.Environments {
			if e.Model == nil {
				continue
			}
			for _, a := range e.Schedule.Assignments {
				ids = append(ids, e.Name+"/"+a.ClusterType.Name+"/"+a.Target.FullName)
			}
		}
		return ids
	})(cmd, given, prefix)
}

// environmentsOrAssignments completes environments, and assignments once there is a slash.
func (g completer) environmentsOrAssignments(cmd *cobra.Command, given []string,
	prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if strings.Contains(prefix, "/") {
		return g.assignmentIDs(cmd, given, prefix)
	}
	return g.environmentNames(cmd, given, prefix)
}

// keys completes the keys of an assignment's values.
func (g completer) keys(cmd *cobra.Command, assignment, prefix string) ([]cobra.Completion,
	cobra.ShellCompDirective) {
	environment, clusterType, target, ok := query.Parse(assignment)
	if !ok {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return g.offer(cmd, prefix,
		func(ctx context.Context, r compiler.Request) (keys []string, _ error) {
			r.Environments = []string{environment}
			b, err := compiler.Compile(ctx, r)
			if err != nil {
				return nil, err
			}
			defer b.Close() //nolint:errcheck // a temporary folder is left
			x, _, err := query.Explain(ctx, b, environment, clusterType, target, "")
			for _, v := range x.Values {
				keys = append(keys, v.Path)
			}
			return keys, err
		})
}

// selecting completes the names that build --allow-empty takes.
func (g completer) selecting() cobra.CompletionFunc {
	return g.evaluated(func(b *compiler.Build) (names []string) {
		for _, e := range b.Environments {
			if e.Model == nil {
				continue
			}
			for _, p := range e.Model.SchedulingPolicies {
				names = append(names, p.Name)
			}
			for _, c := range e.Model.Configs {
				names = append(names, c.Name)
			}
			for _, s := range e.Model.ConfigSchemas {
				names = append(names, s.Name)
			}
		}
		return names
	})
}

// labels completes the keys of labels, and after = the values that a key has.
func (g completer) labels(cmd *cobra.Command, given []string, prefix string) ([]cobra.Completion,
	cobra.ShellCompDirective) {
	_, _, hasKey := strings.Cut(prefix, "=")
	found, directive := g.evaluated(func(b *compiler.Build) (out []string) {
		add := func(labels map[string]string) {
			for key, value := range labels {
				if !hasKey {
					value = ""
				}
				out = append(out, key+"="+value)
			}
		}
		for _, e := range b.Environments {
			if e.Model == nil {
				continue
			}
			for _, c := range e.Model.ClusterTypes {
				add(c.Labels)
			}
			for _, c := range e.Model.Clusters {
				add(c.Labels)
			}
			for _, w := range e.Model.Workloads {
				add(w.Labels)
				for _, t := range w.Targets {
					add(t.Labels)
				}
			}
		}
		return out
	})(cmd, given, prefix)
	if !hasKey {
		directive |= cobra.ShellCompDirectiveNoSpace
	}
	return found, directive
}

// maxCommits is the largest number of commits to offer.
const maxCommits = 20

// revisions completes branches, tags, and the newest commits with their subjects.
func (g completer) revisions(*cobra.Command, []string, string) ([]cobra.Completion,
	cobra.ShellCompDirective) {
	return ofRepository(g.dir, func(repo *git.Repository, names []string) []cobra.Completion {
		out := slices.Clone(names)
		head, err := repo.Resolve("HEAD")
		if err != nil {
			return out
		}
		n := 0
		for c, err := range repo.Mainline(head) {
			if n++; err != nil || n > maxCommits {
				break
			}
			subject, _, _ := strings.Cut(c.Message, "\n")
			out = append(out, cobra.CompletionWithDesc(git.Short(c.ID), terminal.Line(subject)))
		}
		return out
	})
}

// branches completes the branches of the repository that --git names, or that the folder is in.
func (g completer) branches(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion,
	cobra.ShellCompDirective) {
	dir := g.dir
	if f := cmd.Flag("git"); f != nil {
		dir = cmp.Or(g.path(f.Value.String()), dir)
	}
	return ofRepository(dir, func(repo *git.Repository, names []string) []cobra.Completion {
		return slices.DeleteFunc(names, func(name string) bool {
			id, err := repo.Ref("refs/heads/" + name)
			return err != nil || id.IsZero()
		})
	})
}

// ofRepository completes from the repository that a folder is in, whose branches and tags it
// gives.
func ofRepository(dir string,
	of func(repo *git.Repository, names []string) []cobra.Completion) ([]cobra.Completion,
	cobra.ShellCompDirective) {
	repo, err := git.Discover(dir)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer repo.Close()
	names, err := repo.ShortNames()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return of(repo, names), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// sides completes revisions, and completes folders if no revision begins with the prefix.
func (g completer) sides(cmd *cobra.Command, given []string, prefix string) ([]cobra.Completion,
	cobra.ShellCompDirective) {
	found, directive := g.revisions(cmd, given, prefix)
	if slices.ContainsFunc(found,
		func(c cobra.Completion) bool { return strings.HasPrefix(c, prefix) }) {
		return found, directive
	}
	return g.folders(cmd, given, prefix)
}

// contexts completes the contexts of the kubeconfig that a flag names.
func (g completer) contexts(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion,
	cobra.ShellCompDirective) {
	names, err := apiserver.Contexts(g.path(cmd.Flag("kubeconfig").Value.String()))
	if err != nil {
		names = nil
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// folders completes folders, which are relative to the folder of -C.
func (g completer) folders(_ *cobra.Command, _ []string, prefix string) ([]cobra.Completion,
	cobra.ShellCompDirective) {
	if g.dir == "." || filepath.IsAbs(prefix) {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	return []cobra.Completion{g.dir}, cobra.ShellCompDirectiveFilterDirs
}

// repositoryFolders completes folders of the repository that the folder is in.
func (g completer) repositoryFolders(*cobra.Command, []string, string) ([]cobra.Completion,
	cobra.ShellCompDirective) {
	repo, err := git.Discover(g.dir)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer repo.Close()
	return []cobra.Completion{repo.WorkTree()}, cobra.ShellCompDirectiveFilterDirs
}

// files completes files with one of some extensions, or any. They are relative to the folder of
// -C, and shells do not complete names there.
func (g completer) files(extensions ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, prefix string) (found []cobra.Completion,
		_ cobra.ShellCompDirective) {
		switch here := g.dir == "." || filepath.IsAbs(prefix); {
		case here && len(extensions) == 0:
			return nil, cobra.ShellCompDirectiveDefault
		case here:
			return extensions, cobra.ShellCompDirectiveFilterFileExt
		}
		dir, _ := filepath.Split(prefix)
		entries, _ := os.ReadDir(filepath.Join(g.dir, dir))
		for _, e := range entries {
			switch name := dir + e.Name(); {
			case !strings.HasPrefix(name, prefix):
			case e.IsDir():
				found = append(found, name+"/")
			case len(extensions) == 0 ||
				slices.Contains(extensions, strings.TrimPrefix(filepath.Ext(name), ".")):
				found = append(found, name)
			}
		}
		return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}
