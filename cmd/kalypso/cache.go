package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/compiler/cache"
)

func newCache(g builder) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cache",
		Short: "Look after the cache of what was computed",
		Long: `The cache holds what builds computed, so that the next one does not compute it
again. Its folder is $KALYPSO_CACHE_DIR, else "kalypso" in the user's cache
folder. It can never change a result, and is trimmed by itself.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCacheClean(), newCacheSize(g), newCacheVerify(g))
	return cmd
}

func newCacheClean() *cobra.Command {
	return &cobra.Command{
		Use:   "clean",
		Short: "Remove the cache",
		Long: `clean removes the cache's folder. It refuses a folder that is not a cache of
kalypso.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			dir, err := cacheDir()
			if err != nil {
				return err
			}
			return cache.Clean(dir)
		},
	}
}

func newCacheSize(g builder) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "size",
		Short: "Print how large the cache is",
		Args:  cobra.NoArgs,
	}
	output := outputFlag(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		type size struct {
			Folder  string `json:"folder"`
			Bytes   int64  `json:"bytes"`
			Entries int    `json:"entries"`
		}
		dir, err := cacheDir()
		if err != nil {
			return err
		}
		s := size{Folder: dir}
		if s.Bytes, s.Entries, err = cache.Size(dir); err != nil {
			return err
		}
		return g.print(*output, document[size]{apiVersion, "CacheSize", s}, func(w *tabwriter.Writer) {
			row(w, "FOLDER", "SIZE", "ENTRIES")
			row(w, s.Folder, bytesText(s.Bytes), s.Entries)
		})
	}
	return cmd
}

func newCacheVerify(g builder) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Read the whole cache, and remove what is damaged",
		Long: `verify reads every file of the cache, lists those that are damaged, and removes
them. The exit code is 1 if there were any. Builds need no verify: they verify
whatever they read.`,
		Args: cobra.NoArgs,
	}
	output := outputFlag(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		type verification struct {
			Folder  string   `json:"folder"`
			Files   int      `json:"files"`
			Removed []string `json:"removed"`
		}
		dir, err := cacheDir()
		if err != nil {
			return err
		}
		bad, files, err := cache.VerifyAll(dir)
		if err != nil {
			return err
		}
		v := verification{dir, files, append([]string{}, bad...)}
		err = g.print(*output, document[verification]{apiVersion, "CacheVerification", v},
			func(w *tabwriter.Writer) {
				fmt.Fprintf(w, "%s: %d files, %d of them damaged and removed\n", v.Folder, v.Files,
					len(v.Removed))
				for _, name := range v.Removed {
					fmt.Fprintln(w, name)
				}
			})
		if err == nil && len(bad) > 0 {
			return errDifference
		}
		return err
	}
	return cmd
}

// cacheDir returns the cache's folder.
func cacheDir() (string, error) {
	dir, err := cache.DefaultDir()
	if err != nil {
		return "", &cache.UnusableError{Err: err}
	}
	return dir, nil
}

// bytesText shows a number of bytes with the largest unit that it has one of.
func bytesText(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	size, unit := float64(n), 0
	for ; size >= 1024 && unit < len(units)-1; unit++ {
		size /= 1024
	}
	if unit == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", size, units[unit])
}
