package delivery_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/compiler/model"
	bt "github.com/kalypso-io/kalypso/internal/testing/backendtest"
)

// The images of an overlay and of a cluster type become one list without an order.
func TestImages(t *testing.T) {
	named := func(name, newName, newTag string) model.KustomImage {
		return model.KustomImage{Name: name, NewName: newName, NewTag: newTag}
	}
	pinned := model.KustomImage{Name: "app", Digest: "sha256:" + strings.Repeat("0a", 32)}
	for name, c := range map[string]struct{ own, types, want []model.KustomImage }{
		"none":    {nil, nil, nil},
		"own":     {[]model.KustomImage{named("app", "", "1")}, nil, []model.KustomImage{named("app", "", "1")}},
		"types":   {nil, []model.KustomImage{named("app", "", "1")}, []model.KustomImage{named("app", "", "1")}},
		"renamed": {[]model.KustomImage{named("app", "shop", "1")}, []model.KustomImage{named("shop", "mirror/shop", "")}, []model.KustomImage{named("app", "mirror/shop", "1"), named("shop", "mirror/shop", "")}},
		"retagged": {[]model.KustomImage{named("app", "shop", "1")}, []model.KustomImage{named("shop", "", "2")},
			[]model.KustomImage{named("app", "shop", "2"), named("shop", "", "2")}},
		"same":   {[]model.KustomImage{named("app", "", "1")}, []model.KustomImage{named("app", "mirror/app", "")}, []model.KustomImage{named("app", "mirror/app", "1")}},
		"pinned": {[]model.KustomImage{named("app", "", "1")}, []model.KustomImage{pinned}, []model.KustomImage{pinned}},
		"gone": {[]model.KustomImage{named("app", "shop", ""), named("web", "app", "")}, []model.KustomImage{named("app", "mirror/app", "")},
			[]model.KustomImage{named("app", "shop", ""), named("web", "mirror/app", "")}},
	} {
		k := &model.Kustomize{Images: slices.Clone(c.own), Git: &model.Git{Repo: "https://git.example.test/app", Tag: "v1"}}
		p := bt.Platform{Options: "{}"}
		for _, i := range c.types {
			p.Images = append(p.Images, model.Image{KustomImage: i})
		}
		a := p.Assignment(t, bt.Target{Name: "app/main", Manifests: model.Manifests{Kustomize: k}})
		if got := delivery.Images(a, k); !slices.Equal(got, c.want) || !slices.Equal(k.Images, c.own) {
			t.Errorf("%s: got %+v, want %+v; own %+v", name, got, c.want, k.Images)
		}
	}
}

// An overlay that replaces an image again is an error, unless kalypso renders it.
func TestReplacedAgain(t *testing.T) {
	k := &model.Kustomize{Images: []model.KustomImage{{Name: "mirror/app", NewTag: "1"}}, Path: "./",
		Git: &model.Git{Repo: "https://git.example.test/app", Tag: "v1"}}
	p := bt.Platform{Options: "{}", Images: []model.Image{{KustomImage: model.KustomImage{Name: "app", NewName: "mirror/app"}}}}
	for _, render := range []bool{false, true} {
		_, ds := delivery.SourceOf(p.Assignment(t, bt.Target{Name: "app/main", Manifests: model.Manifests{Kustomize: k}, Render: render}))
		if render != (len(ds) == 0) || !render && !strings.Contains(ds[0].Message, "replace mirror/app again") {
			t.Errorf("render %t: got %+v", render, ds)
		}
	}
}
