package main

import "github.com/spf13/cobra"

func newGet(g *global) *cobra.Command { return &cobra.Command{Use: "get"} }
func newExplain(g *global) *cobra.Command { return &cobra.Command{Use: "explain"} }
func newRequirements(g *global) *cobra.Command { return &cobra.Command{Use: "requirements"} }
func newBootstrap(g *global) *cobra.Command { return &cobra.Command{Use: "bootstrap"} }
func newMod(g *global) *cobra.Command { return &cobra.Command{Use: "mod"} }
func newVersion(g *global) *cobra.Command { return &cobra.Command{Use: "version"} }
