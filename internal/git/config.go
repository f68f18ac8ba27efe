package git

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/config"

	"github.com/kalypso-io/kalypso/internal/regular"
)

// readConfig reads a file in the format of git config; a missing file is empty. Included
// files are not read.
func readConfig(file string) (*config.Config, error) {
	c := config.New()
	f, err := regular.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := config.NewDecoder(f).Decode(c); err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return c, nil
}

// option returns the last value of an option, and whether there is one.
func option(c *config.Config, section, key string) (string, bool) {
	for _, s := range slices.Backward(c.Sections) {
		if !strings.EqualFold(s.Name, section) {
			continue
		}
		for _, o := range slices.Backward(s.Options) {
			if o.IsKey(key) {
				return o.Value, true
			}
		}
	}
	return "", false
}

// isTrue reports whether an option is set to a value that is true for git.
func isTrue(c *config.Config, section, key string) bool {
	v, set := option(c, section, key)
	if !set {
		return false
	}
	switch strings.ToLower(v) {
	case "true", "yes", "on":
		return true
	}
	n, err := strconv.Atoi(v)
	return err == nil && n != 0
}

// isPartial reports whether the repository is a partial clone of a remote.
func isPartial(c *config.Config) bool {
	return slices.ContainsFunc(c.Sections, func(s *config.Section) bool {
		return strings.EqualFold(s.Name, "remote") &&
			slices.ContainsFunc(s.Subsections, func(remote *config.Subsection) bool {
				return remote.HasOption("promisor")
			})
	})
}

// userConfigs returns the user's and the system's configs, in order of precedence.
// Unreadable ones are left out.
func userConfigs() []*config.Config {
	var files []string
	if f, set := os.LookupEnv("GIT_CONFIG_GLOBAL"); set {
		files = append(files, f)
	} else if home, err := os.UserHomeDir(); err == nil {
		xdg := os.Getenv("XDG_CONFIG_HOME")
		if xdg == "" {
			xdg = filepath.Join(home, ".config")
		}
		files = append(files, filepath.Join(home, ".gitconfig"), filepath.Join(xdg, "git", "config"))
	}
	if os.Getenv("GIT_CONFIG_NOSYSTEM") == "" {
		system := os.Getenv("GIT_CONFIG_SYSTEM")
		if system == "" {
			system = "/etc/gitconfig"
		}
		files = append(files, system)
	}
	var configs []*config.Config
	for _, f := range files {
		if c, err := readConfig(f); err == nil {
			configs = append(configs, c)
		}
	}
	return configs
}
