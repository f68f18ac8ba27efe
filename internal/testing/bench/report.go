//go:build unix

package main

import (
	"os"
	"strconv"
	"strings"
)

// report is everything that was measured.
type report struct {
	Go         string  `json:"go"`
	Processors int     `json:"processors"`
	Load       float64 `json:"load"` // processes that run or wait at the start, over the last minute; 0 if not known
	LoadAtEnd  float64 `json:"loadAtEnd"`
	Folder     string  `json:"folder"` // the folder of the files
	Disk       string  `json:"disk"`   // where files of OnDisk were

	Platforms    []*measured    `json:"platforms"`
	OnDisk       []*measured    `json:"onDisk,omitempty"` // the same platforms on a disk, only for the budgets
	Compositions []*composition `json:"compositions"`
	Promotions   *promotions    `json:"promotions,omitempty"`
	Fleet        *fleet         `json:"fleet,omitempty"`
	Local        *local         `json:"local,omitempty"`
	Inventories  []*inventory   `json:"inventories,omitempty"`
	Vet          cost           `json:"vet"` // of the sample platform
	Application  *applications  `json:"application,omitempty"`
	Bombs        *bombs         `json:"bombs,omitempty"`
}

// find returns the platform of a kind and size, or nil.
func find(all []*measured, kind string, assignments int) *measured {
	for _, m := range all {
		if m.Kind == kind && m.Assignments == assignments {
			return m
		}
	}
	return nil
}

// load returns the machine's load over the last minute, if Linux reports it.
func load() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), " ")
	n, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0
	}
	return n
}
