package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso"
	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/application"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/internal/cuemodule"
)

func newVendor(g author) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "vendor",
		Short: "Copy what kalypso.lock pins into the platform",
		Long: `vendor copies the content of everything that kalypso.lock pins into the folder
vendor of the platform, or of the application, so that it builds on machines without
a network and without a store. What the store of this machine lacks is fetched; what
is not pinned any more is removed. Commit the folder, or carry it along.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return g.vendor(cmd.Context(), timeout) },
	}
	sourceTimeoutFlag(cmd, &timeout)
	return cmd
}

func (g author) vendor(ctx context.Context, timeout time.Duration) error {
	fetcher, err := newFetcher(timeout)
	if err != nil {
		return err
	}
	defer fetcher.Close()
	if application.Is(g.dir) {
		return g.vendorFolder(ctx, g.dir, fetcher)
	}
	p, _, err := source.Open(g.dir)
	if err != nil {
		return err
	}
	return g.withCache(func(c *cache.Cache) error {
		if err := g.unready(ctx, c); err != nil {
			return err
		}
		return g.vendorFolder(ctx, p.Root, compiler.PinnedFetcher(ctx, g.request(nil, c), fetcher))
	})
}

// vendorFolder vendors the sources that the kalypso.lock of a folder pins.
func (g author) vendorFolder(ctx context.Context, root string, fetcher dependency.Fetcher) error {
	release, err := dependency.Alone(ctx, root, "")
	if err != nil {
		return err
	}
	defer release()
	contents, ds, err := dependency.Open(root, "")
	if err != nil {
		return err
	}
	if err := g.report(g.err, ds); err != nil {
		return err
	}
	if diag.Errors(ds) {
		return errPlatform
	}
	var uses []dependency.Use
	var digests []dependency.Digest
	for _, e := range contents.Lock.Sources {
		uses = append(uses, dependency.Use{Source: e.Source, By: []string{"kalypso.lock"}})
		digests = append(digests, e.Content)
	}
	_, sources, err := dependency.Update(ctx, dependency.UpdateRequest{Root: root, Lock: contents.Lock,
		Store: contents.Store, Uses: uses, Fetcher: fetcher})
	if err != nil {
		return err
	}
	if err := g.failures(sources); err != nil {
		return err
	}
	copied, err := contents.Store.Copy(digests, filepath.Join(root, dependency.VendorDir))
	if err != nil {
		return err
	}
	fmt.Fprintf(g.err, "%s: %d added, %d removed, %d in all\n", dependency.VendorDir, copied.Added,
		copied.Removed, len(digests))
	return nil
}

func newMod(g author) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mod",
		Short: "Manage the CUE module kalypso.io of the platform",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "vendor",
		Short: "Copy the schema and standard library into the platform",
		Long: `vendor writes the module kalypso.io below cue.mod/pkg of the platform and drops
its version from cue.mod/module.cue, so that the cue command and its language
server work where kalypso is not installed. Run it again after an update.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, _, err := source.Open(g.dir)
			if err != nil {
				return err
			}
			if p.Module == kalypso.ModulePath {
				return fmt.Errorf("%s is the repository of kalypso, which has the module already: name a "+
					"platform with -C, as examples/hello-world", p.Root)
			}
			if err := g.withCache(func(c *cache.Cache) error { return g.unready(cmd.Context(), c) }); err !=
				nil {
				return err
			}
			changed, err := cuemodule.Vendor(p.Root)
			for _, name := range changed {
				fmt.Fprintln(g.out, name)
			}
			return err
		},
	})
	return cmd
}
