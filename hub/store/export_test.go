package store

import (
	"context"
	"fmt"
	"io/fs"
)

// Older makes a database as a hub with the migrations up to a number has made it.
func Older(ctx context.Context, name string, number int) error {
	s := newDatabase(name)
	if err := s.open(name); err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	all, err := numbered(migrations)
	if err == nil {
		err = s.begin(ctx)
	}
	for i := 0; err == nil && i < len(all) && all[i].number <= number; i++ {
		err = s.migration(ctx, all[i])
	}
	return err
}

// Numbered returns the numbers of migrations in their order.
func Numbered(in fs.FS) (numbers []int, err error) {
	all, err := numbered(in)
	for _, m := range all {
		numbers = append(numbers, m.number)
	}
	return numbers, err
}

// Room limits a SQLite database to so many more pages than it has.
func (s *Store) Room(pages int) error {
	var has int
	if err := s.db.QueryRow(`PRAGMA page_count`).Scan(&has); err != nil {
		return err
	}
	return s.db.QueryRow(fmt.Sprint(`PRAGMA max_page_count = `, has+pages)).Scan(&has)
}
