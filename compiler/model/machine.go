package model

// Package is what a machine runs without containers.
type Package struct {
	Deb   map[string]Deb         `json:"deb,omitempty"`   // by name
	Files map[string]MachineFile `json:"files,omitempty"` // by absolute path
	Units map[string]Unit        `json:"units,omitempty"` // by name with type
}

// Deb is a Debian package at one version: of the machine's own package sources,
// or the file at URL, which has Digest.
type Deb struct {
	Version string `json:"version"`
	URL     string `json:"url,omitempty"`
	Digest  string `json:"digest,omitempty"` // sha256:…
}

// MachineFile is a file of a machine: Content, or what lies at URL and has Digest.
type MachineFile struct {
	Content *string `json:"content,omitempty"`
	URL     string  `json:"url,omitempty"`
	Digest  string  `json:"digest,omitempty"` // sha256:…
	Mode    string  `json:"mode"`             // four octal digits
	Owner   string  `json:"owner,omitempty"`
	Group   string  `json:"group,omitempty"`
}

// Unit is a systemd unit; one without any section comes with a Debian package.
type Unit struct {
	Unit    *Value `json:"unit,omitempty"`
	Service *Value `json:"service,omitempty"`
	Socket  *Value `json:"socket,omitempty"`
	Timer   *Value `json:"timer,omitempty"`
	Path    *Value `json:"path,omitempty"`
	Install *Value `json:"install,omitempty"`
	Enabled bool   `json:"enabled"`
	Harden  bool   `json:"harden"`
}

// Playbook is an Ansible playbook of a git repository. The Path of Git is empty.
type Playbook struct {
	Git      *Git   `json:"git"`
	Playbook string `json:"playbook"` // its path in the repository
	Vars     *Value `json:"vars,omitempty"`
}
