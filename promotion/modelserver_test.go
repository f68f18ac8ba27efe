package promotion

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/revlist"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/memory"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/testing/remotetest"
)

// modelServer serves repositories over loopback. Its own repositories are in memory, and it
// implements only the part of git's protocol that the engine uses. It can also serve the
// repositories of git's own server, which is as slow as processes are.
type modelServer struct {
	url  string
	real *remotetest.Server // nil for repositories in memory

	mu    sync.Mutex
	repos map[string]*modelRepo // by path
}

// fault looks at each request to the repositories of a world, before and after it: true
// breaks the connection.
type fault func(push, done bool) bool

func newModelServer(t testing.TB, real bool) *modelServer {
	s := &modelServer{repos: map[string]*modelRepo{}}
	if real {
		s.real = remotetest.Serve(t)
	}
	server := httptest.NewServer(s)
	s.url = server.URL
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return s
}

// modelRepo is a bare repository.
type modelRepo struct {
	url  string
	real *remotetest.Repository
	mu   sync.Mutex
	objects
	fault fault
}

// objects are the objects of a repository in memory.
type objects = *memory.Storage

func (s *modelServer) repository(name string) *modelRepo {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &modelRepo{url: s.url + "/" + name, objects: memory.NewStorage()}
	if s.real != nil {
		r.real = s.real.Repository(name, "uploadpack.allowAnySHA1InWant", "true", "uploadpack.allowFilter", "true")
	}
	s.repos[name] = r
	return r
}

func (s *modelServer) drop(r *modelRepo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.repos, func(_ string, other *modelRepo) bool { return other == r })
}

func (s *modelServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, command := path.Split(strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/"), "/info/refs"))
	if strings.HasSuffix(r.URL.Path, "/info/refs") {
		name, command = name+command, ""
	}
	s.mu.Lock()
	repo := s.repos[strings.Trim(name, "/")]
	s.mu.Unlock()
	if repo == nil {
		http.NotFound(w, r)
		return
	}
	repo.mu.Lock()
	defer repo.mu.Unlock()
	push := command == "git-receive-pack"
	if repo.fault != nil && repo.fault(push, false) {
		panic(http.ErrAbortHandler)
	}
	answer := httptest.NewRecorder()
	switch {
	case repo.real != nil:
		s.real.ServeHTTP(answer, r)
	case command == "":
		repo.advertise(answer, r.URL.Query().Get("service"))
	case push:
		repo.receive(answer, r)
	default:
		repo.upload(answer, r)
	}
	if repo.fault != nil && repo.fault(push, true) {
		panic(http.ErrAbortHandler)
	}
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

// list returns the refs.
func (r *modelRepo) list() map[string]git.Hash {
	out := map[string]git.Hash{}
	if r.real != nil {
		for line := range strings.Lines(string(r.git(nil, "for-each-ref", "--format=%(objectname) %(refname)"))) {
			if id, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
				out[name] = plumbing.NewHash(id)
			}
		}
		return out
	}
	for name, ref := range r.ReferenceStorage {
		out[name.String()] = ref.Hash()
	}
	return out
}

// refs is list for callers that do not have the lock.
func (r *modelRepo) refs() map[string]git.Hash {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.list()
}

func (r *modelRepo) advertise(w http.ResponseWriter, service string) {
	w.Header().Set("Content-Type", "application/x-"+service+"-advertisement")
	e := pktline.NewEncoder(w)
	_ = e.EncodeString("# service=" + service + "\n")
	_ = e.Flush()
	can := "\x00report-status delete-refs ofs-delta"
	if service == "git-upload-pack" {
		can = "\x00ofs-delta allow-tip-sha1-in-want allow-reachable-sha1-in-want symref=HEAD:refs/heads/main"
	}
	refs := r.list()
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		_ = e.EncodeString(refs[name].String() + " " + name + can + "\n")
		can = ""
	}
	if can != "" {
		_ = e.EncodeString(plumbing.ZeroHash.String() + " capabilities^{}" + can + "\n")
	}
	_ = e.Flush()
}

func (r *modelRepo) upload(w http.ResponseWriter, request *http.Request) {
	w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
	var wants []plumbing.Hash
	for lines := pktline.NewScanner(request.Body); lines.Scan(); {
		if fields := strings.Fields(string(lines.Bytes())); len(fields) > 1 && fields[0] == "want" {
			wants = append(wants, plumbing.NewHash(fields[1]))
		}
	}
	_ = pktline.NewEncoder(w).EncodeString("NAK\n")
	ids, err := revlist.Objects(r.objects, wants, nil)
	if err == nil {
		_, err = packfile.NewEncoder(w, r.objects, false).Encode(ids, 0)
	}
	if err != nil {
		panic(http.ErrAbortHandler)
	}
}

func (r *modelRepo) receive(w http.ResponseWriter, request *http.Request) {
	w.Header().Set("Content-Type", "application/x-git-receive-pack-result")
	body, err := io.ReadAll(request.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	in := bytes.NewReader(body)
	var commands [][]string
	for lines := pktline.NewScanner(in); lines.Scan() && len(lines.Bytes()) > 0; {
		line, _, _ := strings.Cut(string(lines.Bytes()), "\x00")
		commands = append(commands, strings.Fields(line))
	}
	e := pktline.NewEncoder(w)
	unpacked := "ok"
	if in.Len() > 0 {
		if err := packfile.UpdateObjectStorage(r.objects, in); err != nil {
			unpacked = err.Error()
		}
	}
	_ = e.EncodeString("unpack " + unpacked + "\n")
	for _, c := range commands {
		old, id, ref := plumbing.NewHash(c[0]), plumbing.NewHash(c[1]), plumbing.ReferenceName(c[2])
		if r.list()[c[2]] != old || unpacked != "ok" {
			_ = e.EncodeString("ng " + c[2] + " failed to update ref\n")
			continue
		}
		if r.ReferenceStorage[ref] = plumbing.NewHashReference(ref, id); id.IsZero() {
			delete(r.ReferenceStorage, ref)
		}
		_ = e.EncodeString("ok " + c[2] + "\n")
	}
	_ = e.Flush()
}

// git runs git in a repository that has a folder, and returns its output, byte for byte.
func (r *modelRepo) git(in []byte, args ...string) []byte {
	cmd := exec.Command("git", append([]string{"-C", r.real.Dir}, args...)...)
	cmd.Stdin = bytes.NewReader(in)
	out, err := cmd.Output()
	if err != nil {
		panic(fmt.Sprintf("git %v: %v", args, err))
	}
	return out
}

// add writes an object.
func (r *modelRepo) add(kind git.Kind, data []byte) git.Hash {
	t := plumbing.ObjectType(kind)
	if r.real != nil {
		return plumbing.NewHash(strings.TrimSpace(string(r.git(data, "hash-object", "-w", "--stdin", "-t", t.String()))))
	}
	o := r.NewEncodedObject()
	o.SetType(t)
	w, err := o.Writer()
	if err == nil {
		_, err = w.Write(data)
	}
	if err != nil {
		panic(err)
	}
	id, err := r.SetEncodedObject(o)
	if err != nil {
		panic(err)
	}
	return id
}

// content returns the content of an object.
func (r *modelRepo) content(id git.Hash, kind git.Kind) []byte {
	t := plumbing.ObjectType(kind)
	if r.real != nil {
		return r.git(nil, "cat-file", t.String(), id.String())
	}
	o, err := storer.EncodedObjectStorer(r.objects).EncodedObject(t, id)
	if err != nil {
		panic(fmt.Sprintf("%s %s: %v", t, id, err))
	}
	in, err := o.Reader()
	if err != nil {
		panic(err)
	}
	defer in.Close()
	data, err := io.ReadAll(in)
	if err != nil {
		panic(err)
	}
	return data
}

// parsed returns a commit's tree, its first parent and its message.
func (r *modelRepo) parsed(id git.Hash) (tree, parent git.Hash, text string) {
	head, text, _ := strings.Cut(string(r.content(id, git.CommitKind)), "\n\n")
	for line := range strings.Lines(head) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case name == "tree":
			tree = plumbing.NewHash(value)
		case name == "parent" && parent.IsZero():
			parent = plumbing.NewHash(value)
		}
	}
	return tree, parent, text
}

// find returns the id of the object at a path of a tree, and whether it exists.
func (r *modelRepo) find(tree git.Hash, at string) (git.Hash, bool) {
	first, rest, deeper := strings.Cut(at, "/")
	entries, err := git.ParseTree(r.content(tree, git.TreeKind))
	if err != nil {
		panic(err)
	}
	for _, e := range entries {
		if e.Name == first {
			if deeper {
				return r.find(e.ID, rest)
			}
			return e.ID, true
		}
	}
	return git.Hash{}, false
}

// put returns a tree with another file at a path.
func (r *modelRepo) put(tree git.Hash, at, text string) git.Hash {
	var entries []git.Entry
	if !tree.IsZero() {
		var err error
		if entries, err = git.ParseTree(r.content(tree, git.TreeKind)); err != nil {
			panic(err)
		}
	}
	first, rest, deeper := strings.Cut(at, "/")
	e := git.Entry{Name: first, Mode: git.FileMode}
	if deeper {
		e.Mode = git.FolderMode
		for _, there := range entries {
			if there.Name == first {
				e.ID = there.ID
			}
		}
		e.ID = r.put(e.ID, rest, text)
	} else {
		e.ID = r.add(git.BlobKind, []byte(text))
	}
	entries = append(slices.DeleteFunc(slices.Clone(entries), func(o git.Entry) bool { return o.Name == first }), e)
	return r.add(git.TreeKind, git.EncodeTree(entries))
}

// commit commits files to a branch; others stay as they are.
func (r *modelRepo) commit(branch string, when time.Time, text string, files map[string]string) git.Hash {
	r.mu.Lock()
	defer r.mu.Unlock()
	parent := r.list()["refs/heads/"+branch]
	var tree git.Hash
	var parents []git.Hash
	if !parent.IsZero() {
		tree, _, _ = r.parsed(parent)
		parents = append(parents, parent)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		tree = r.put(tree, name, files[name])
	}
	return r.move(branch, tree, parents, when, text)
}

// move moves a branch to a new commit.
func (r *modelRepo) move(branch string, tree git.Hash, parents []git.Hash, when time.Time, text string) git.Hash {
	by := git.Signature{Name: "someone", Email: "someone@example.com", When: when}
	data, err := git.Commit{Tree: tree, Parents: parents, Author: by, Committer: by, Message: text}.Signed(nil)
	if err != nil {
		panic(err)
	}
	id := r.add(git.CommitKind, data)
	ref := plumbing.ReferenceName("refs/heads/" + branch)
	if r.real != nil {
		r.git(nil, "update-ref", ref.String(), id.String())
		return id
	}
	r.ReferenceStorage[ref] = plumbing.NewHashReference(ref, id)
	return id
}
