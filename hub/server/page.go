package server

import (
	"encoding/base64"
	"encoding/json"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/hub/store"
)

// Page are the parameters of a long list. Those that operations have in common are exported
// for huma, which fills no others.
type Page struct {
	Cursor string `query:"cursor" maxLength:"1024" doc:"The next of the page before."`
	Limit  int    `query:"limit" minimum:"1" maximum:"10000" default:"100"`
}

// cursorOf returns the cursor of the page after something.
func cursorOf(last any) string {
	data, _ := json.Marshal(last) // it is plain data
	return base64.RawURLEncoding.EncodeToString(data)
}

// read reads after what a page begins; false where that is the beginning of the list. The error is of
// what no hub has given.
func (p *Page) read(into any) (there bool, err error) {
	if p.Cursor == "" {
		return false, nil
	}
	data, err := base64.RawURLEncoding.DecodeString(p.Cursor)
	if err != nil || json.Unmarshal(data, into) != nil {
		return false, errCursor()
	}
	return true, nil
}

func errCursor() error {
	return huma.Error422UnprocessableEntity("cursor is none that this hub has given for this list")
}

// before reads the number before which a page begins; 0 for the newest.
func (p *Page) before() (number int64, err error) {
	there, err := p.read(&number)
	if err == nil && there && number <= 0 {
		err = errCursor()
	}
	return number, err
}

// place reads the place after which a page of assignments of an earlier moment begins.
func (p *Page) place() (at store.Place, err error) {
	there, err := p.read(&at)
	if err == nil && there && at.Environment == "" {
		err = errCursor()
	}
	return at, err
}

// after reads the position after which a page of assignments begins.
func (p *Page) after() (at state.Position, err error) {
	there, err := p.read(&at)
	if err == nil && there && (at.Environment == "" || at.Cluster == "" || at.Target == "") {
		err = errCursor()
	}
	return at, err
}
