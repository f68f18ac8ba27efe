package notify

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/kalypso-io/kalypso/internal/strictyaml"
)

// Kind is the kind of a target: the format of its messages.
type Kind string

// The kinds.
const (
	Webhook Kind = "webhook" // a Message as JSON
	Slack   Kind = "slack"   // a text, as incoming webhooks of Slack and similar services accept it
)

// Target is a receiver of messages.
type Target struct {
	Name string `yaml:"name"`
	Kind Kind   `yaml:"kind"`
	// URL is the address of the receiver, and a secret. URLFile is a file with the URL, and KeyFile
	// is a file with the key that signs the messages to a webhook.
	URL     string `yaml:"url"`
	URLFile string `yaml:"urlFile"`
	KeyFile string `yaml:"keyFile"`
	// Events and Environments limit the messages; empty lists mean all.
	Events       []Event  `yaml:"events"`
	Environments []string `yaml:"environments"`
	// Template is the template of the text; "" means the default of the event.
	Template string `yaml:"template"`

	template *template.Template // nil for the default of the event
}

// names matches the name of a target, which is part of keys in the database.
var names = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// Parse reads targets, as YAML or JSON.
func Parse(data []byte) ([]*Target, error) {
	var targets []*Target
	if err := strictyaml.Decode(data, &targets); err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for i, t := range targets {
		if t == nil || !names.MatchString(t.Name) {
			return nil, fmt.Errorf("entry %d needs a name of lower-case letters, digits and hyphens", i+1)
		}
		if known[t.Name] {
			return nil, fmt.Errorf("%s: there are two of that name", t.Name)
		}
		known[t.Name] = true
		if err := t.check(); err != nil {
			return nil, fmt.Errorf("%s: %w", t.Name, err)
		}
	}
	return targets, nil
}

func (t *Target) check() error {
	t.Kind = cmp.Or(t.Kind, Webhook)
	switch {
	case t.Kind != Webhook && t.Kind != Slack:
		return fmt.Errorf("there is no kind %q: there are webhook and slack", t.Kind)
	case (t.URL == "") == (t.URLFile == ""):
		return errors.New("it needs url or urlFile, and not both")
	case t.Kind == Slack && t.KeyFile != "":
		return errors.New("keyFile is for webhooks: Slack checks no signatures")
	}
	for _, e := range t.Events {
		if !slices.Contains(Events(), e) {
			return fmt.Errorf("there is no event %q: there are %v", e, Events())
		}
	}
	if _, err := t.address(); err != nil {
		return err
	}
	if _, err := t.key(); err != nil {
		return err
	}
	if t.Template == "" {
		return nil
	}
	var err error
	if t.template, err = newTemplate(t.Template); err != nil {
		return fmt.Errorf("the template: %w", err)
	}
	for _, e := range Events() {
		if len(t.Events) > 0 && !slices.Contains(t.Events, e) {
			continue
		}
		for _, m := range samples(e) {
			if _, err := execute(t.template, m); err != nil {
				return fmt.Errorf("the template fails for the event %s, which may be without some fields: %w",
					e, err)
			}
		}
	}
	return nil
}

// takes reports whether a target is for an event in an environment.
func (t *Target) takes(e Event, environment string) bool {
	return (len(t.Events) == 0 || slices.Contains(t.Events, e)) && t.covers(environment)
}

func (t *Target) covers(environment string) bool {
	return len(t.Environments) == 0 || slices.Contains(t.Environments, environment)
}

// address returns the URL of the target. No error contains the URL.
func (t *Target) address() (string, error) {
	text := t.URL
	if t.URLFile != "" {
		data, err := os.ReadFile(t.URLFile)
		if err != nil {
			return "", fmt.Errorf("urlFile: %w", err)
		}
		text = strings.TrimSpace(string(data))
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return "", errors.New("the URL is none of http or https")
	}
	return text, nil
}

// leastKey is the minimum length of a key.
const leastKey = 16

// key returns the key that signs, or "" if the target has no key.
func (t *Target) key() (string, error) {
	if t.KeyFile == "" {
		return "", nil
	}
	data, err := os.ReadFile(t.KeyFile)
	if err != nil {
		return "", fmt.Errorf("keyFile: %w", err)
	}
	key := strings.TrimSpace(string(data))
	if len(key) < leastKey {
		return "", fmt.Errorf("keyFile %s: a key of fewer than %d characters can be guessed", t.KeyFile,
			leastKey)
	}
	return key, nil
}
