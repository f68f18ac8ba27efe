package git

import "strings"

// RemoteURL returns the URL of a remote as the repository's own config has it, or "".
func (r *Repository) RemoteURL(name string) string {
	if r.config == nil {
		return ""
	}
	for _, s := range r.config.Sections {
		if !strings.EqualFold(s.Name, "remote") {
			continue
		}
		for _, sub := range s.Subsections {
			if sub.Name == name {
				return sub.Option("url")
			}
		}
	}
	return ""
}
