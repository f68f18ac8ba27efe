package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// days is a flag with a number of days, as 180d.
type days time.Duration

const aDay = 24 * time.Hour

func (d *days) String() string { return fmt.Sprintf("%dd", time.Duration(*d)/aDay) }

func (*days) Type() string { return "days" }

func (d *days) Set(text string) error {
	const most = 36_500
	n, err := strconv.Atoi(strings.TrimSuffix(text, "d"))
	if err != nil || n < 0 || n > most || !strings.HasSuffix(text, "d") {
		return fmt.Errorf("write a number of days up to %d, as 180d", most)
	}
	*d = days(time.Duration(n) * aDay)
	return nil
}
