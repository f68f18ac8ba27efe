//go:build unix

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// views measures the commands that show a platform: one file of pages, the comparison of two
// commits with different values, and a page of an assignment.
func (b *bench) views() error {
	if _, err := output(git(b.repository(), "commit", "-q", "-m", "Another value", "--", "platform")); err != nil {
		return err
	}
	compared := func() *exec.Cmd {
		return b.command(b.folderCache(), "-C", b.platform(), "compare", "dev", "dev", "--at", "HEAD~1",
			"--at", "HEAD", "-o", "json")
	}
	if err := b.often(compareCommits, compared); err != nil {
		return err
	}
	if _, err := b.once(viewFile, b.command(b.folderCache(), "-C", b.platform(), "view", "--to",
		filepath.Join(b.Dir, "fleet.html"))); err != nil {
		return err
	}
	return b.viewPages()
}

// viewPages serves the pages, and measures the time of one page: the page of another assignment
// each time, with a warm cache.
func (b *bench) viewPages() (err error) {
	cmd := b.command(b.folderCache(), "-C", b.platform(), "view", "--listen", "127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		_ = cmd.Wait() // it was interrupted
	}()
	server, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return err
	}
	server = strings.TrimSpace(server)
	list, _, err := get(server + "policies/dev")
	if err != nil {
		return err
	}
	var times []time.Duration
	for _, part := range strings.Split(list, `href="/assignments/`)[1:] {
		path, _, _ := strings.Cut(part, `"`)
		_, took, err := get(server + "assignments/" + path)
		if err != nil {
			return err
		}
		if times = append(times, took); len(times) == 100 {
			break
		}
	}
	if len(times) == 0 {
		return errors.New("the page of policies names no assignment")
	}
	var sum time.Duration
	for _, took := range times {
		sum += took
	}
	b.out.Page = sum.Seconds() / float64(len(times))
	return nil
}

// get gets a page, and returns the time that it took.
func get(address string) (text string, took time.Duration, err error) {
	begin := time.Now()
	answer, err := http.Get(address)
	if err != nil {
		return "", 0, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", address, answer.Status)
	}
	return string(body), time.Since(begin), err
}
