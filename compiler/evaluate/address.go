package evaluate

import (
	"fmt"
	"strconv"
	"strings"

	"cuelang.org/go/cue"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/credential"
)

// checkAddress reports credentials in an address. It looks at what is written, which
// may be in conflict with something else.
func (x *checker) checkAddress(v cue.Value, s *shape, ref model.Ref, told *[]string) {
	for _, part := range conjuncts(v) {
		address, err := part.String()
		if err != nil {
			continue
		}
		if d, found := s.credentials(address, ref.Path[strings.LastIndexByte(ref.Path, '.')+1:]); found {
			x.tell(d, ref, told, v)
			return
		}
	}
}

// credentials says that an address of the shape has credentials, without repeating
// it. name is how messages call it.
func (s *shape) credentials(address, name string) (d diag.Diagnostic, found bool) {
	what := credential.In(address)
	if what == "" && s.address != "#HTTPURL" && credential.HasQuery(address) {
		what = "the query"
	}
	if what == "" {
		return d, false
	}
	hint := "a reconciler gets a secret by secretRef or credentials, and `kalypso lock` and promotion what git, helm and docker know of the host"
	if strings.HasPrefix(address, "ssh:") || !strings.Contains(address, "://") {
		hint = "ssh finds its keys by host"
	}
	return diag.New(diag.URLCredentials, fmt.Sprintf("%s has credentials in its URL: %s", name, what)).
		Hinting("remove them from the URL, and withdraw them if others can see the file; " + hint), true
}

// credentialsIn is credentials for the addresses that messages of CUE repeat.
func (o problem) credentialsIn(s *shape) (d diag.Diagnostic, found bool) {
	if s == nil || s.address == "" {
		return d, false
	}
	for _, message := range o.messages {
		values := outside.FindStringSubmatch(message)
		if values == nil {
			values = conflicting.FindStringSubmatch(message)
		}
		for _, text := range values[min(1, len(values)):] {
			if address, err := strconv.Unquote(text); err == nil && !found {
				d, found = s.credentials(address, o.name())
			}
		}
	}
	return d, found
}
