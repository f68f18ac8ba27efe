package git

import (
	"errors"
	"fmt"
)

// maxObject is the size of the largest object that is read, because objects may come from
// anywhere.
const maxObject = 1 << 30

// ErrTooLarge is wrapped by the error for an object of more bytes than may be read.
var ErrTooLarge = errors.New("it is too large")

// Object reads an object, and verifies its id. It returns a *MissingError if the repository does
// not have the object.
func (r *Repository) Object(id Hash) (Object, error) { return r.objectWithin(id, maxObject) }

func (r *Repository) objectWithin(id Hash, most int64) (Object, error) {
	o, err := r.present(id, most)
	if r.Missing == nil || !errors.As(err, new(*MissingError)) {
		return o, err
	}
	if err := r.Missing(id); err != nil {
		return Object{}, err
	}
	return r.present(id, most)
}

// present reads an object without calling Missing.
func (r *Repository) present(id Hash, most int64) (Object, error) {
	o, err := r.objects.read(id, most)
	if err == errAbsent {
		return Object{}, r.missing(id)
	}
	if err != nil {
		return Object{}, fmt.Errorf("reading object %s of %s: %w", id, r.dir, err)
	}
	if ID(o.Kind, o.Data) != id {
		return Object{}, fmt.Errorf("object %s of %s is corrupt", id, r.dir)
	}
	return o, nil
}

// Has reports whether the repository has an object. It does not call Missing.
func (r *Repository) Has(id Hash) bool { return r.objects.has(id) }
