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
)

// readConfig reads a file in the format of git config; one that is not there is
// empty. Files that it includes are not read.
func readConfig(file string) (*config.Config, error) {
	c := config.New()
	f, err := os.Open(file)
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

// isTrue says whether an option is set to what git reads as true.
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

// extensions are those that change nothing for this package, with the values
// that do not; nil for all (https://git-scm.com/docs/git-config under
// extensions.*).
var extensions = map[string][]string{
	"noop":              nil,
	"noop-v1":           nil,
	"partialclone":      nil, // what is missing is reported when it is read
	"preciousobjects":   nil, // nothing is ever removed
	"worktreeconfig":    nil,
	"relativeworktrees": nil,
	"objectformat":      {"sha1"},
	"refstorage":        {"files"},
}

// checkFormat reports a repository in a format that is not known.
func checkFormat(c *config.Config) error {
	if v, set := option(c, "core", "repositoryformatversion"); set && v != "0" && v != "1" {
		return fmt.Errorf("its format version %s is not known", v)
	}
	for _, s := range c.Sections {
		if !strings.EqualFold(s.Name, "extensions") {
			continue
		}
		for _, o := range s.Options {
			allowed, known := extensions[strings.ToLower(o.Key)]
			if !known || allowed != nil && !slices.Contains(allowed, strings.ToLower(o.Value)) {
				return fmt.Errorf("its format is not supported: extensions.%s is %s, and kalypso needs a repository with SHA-1 ids and refs in files", o.Key, o.Value)
			}
		}
	}
	return nil
}

// userConfigs returns the user's and the system's configs, the strongest first.
// One that cannot be read is left out: it is not what the user asked to change.
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
