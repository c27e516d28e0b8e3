package refhost

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/a2mcp/a2mcp/proto"
)

// Bounds of what the tools return.
const (
	maxReadFile = 64 << 20
	maxMatches  = 200
	maxLine     = 500
)

func readTool() tool {
	return tool{
		name:        "read",
		description: "Read a file: text as it is, an image as an image. Lines can be picked with offset (1 is the first) and limit.",
		schema: `{"type":"object","properties":{"path":{"type":"string"},"offset":{"type":"integer","minimum":1},` +
			`"limit":{"type":"integer","minimum":1}},"required":["path"],"additionalProperties":false}`,
		run: func(e env, arguments []byte) ([]byte, bool, error) {
			a, err := decode[struct {
				Path          string
				Offset, Limit int
			}](arguments)
			if err != nil {
				return nil, false, err
			}
			path := e.path(a.Path)
			info, err := readable(path)
			if err != nil {
				return nil, false, err
			}
			if info.Size() > maxReadFile {
				return nil, false, fmt.Errorf("%s has %d bytes; read takes at most %d", path, info.Size(), maxReadFile)
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return nil, false, err
			}
			if mime := http.DetectContentType(data); strings.HasPrefix(mime, "image/") {
				return imageContent(data, mime), false, nil
			}
			return proto.TextContent(pick(string(data), a.Offset, a.Limit)), false, nil
		},
	}
}

func imageContent(data []byte, mime string) []byte {
	block := append([]byte(`[{"type":"image","data":"`), base64.StdEncoding.EncodeToString(data)...)
	block = append(append(block, `","mimeType":`...), proto.Encode(mime)...)
	return append(block, `}]`...)
}

// pick returns lines from offset on, at most limit.
func pick(text string, offset, limit int) string {
	if offset <= 1 && limit == 0 {
		return text
	}
	lines := strings.SplitAfter(text, "\n")
	lines = lines[min(max(offset-1, 0), len(lines)):]
	if limit > 0 {
		lines = lines[:min(limit, len(lines))]
	}
	return strings.Join(lines, "")
}

func writeTool() tool {
	return tool{
		name: "write", exclusive: true, asks: true,
		description: "Write a text to a file, whole or not at all; folders on the way are made.",
		schema: `{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}},` +
			`"required":["path","content"],"additionalProperties":false}`,
		run: func(e env, arguments []byte) ([]byte, bool, error) {
			a, err := decode[struct{ Path, Content string }](arguments)
			if err != nil {
				return nil, false, err
			}
			path := e.path(a.Path)
			if err := writeWhole(path, a.Content); err != nil {
				return nil, false, err
			}
			return proto.TextContent(fmt.Sprintf("wrote %d bytes to %s", len(a.Content), path)), false, nil
		},
	}
}

func writeWhole(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".write-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already if all went well
	mode := fs.FileMode(0o644)
	if old, err := os.Stat(path); err == nil {
		mode = old.Mode().Perm()
	}
	_, err = f.WriteString(content)
	if err == nil {
		err = f.Chmod(mode)
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func grepTool() tool {
	return tool{
		name:        "grep",
		description: "Search the files below a folder for a regular expression (RE2). At most 200 lines are returned.",
		schema: `{"type":"object","properties":{"pattern":{"type":"string"},"path":{"type":"string"}},` +
			`"required":["pattern"],"additionalProperties":false}`,
		run: func(e env, arguments []byte) ([]byte, bool, error) {
			a, err := decode[struct{ Pattern, Path string }](arguments)
			if err != nil {
				return nil, false, err
			}
			pattern, err := regexp.Compile(a.Pattern)
			if err != nil {
				return nil, false, err
			}
			found, err := grep(e, pattern, e.path(a.Path))
			if err != nil {
				return nil, false, err
			}
			return proto.TextContent(found), false, nil
		},
	}
}

func grep(e env, pattern *regexp.Regexp, root string) (string, error) {
	var found strings.Builder
	matches := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case e.ctx.Err() != nil:
			return e.ctx.Err()
		case err != nil && path == root:
			return err
		case err != nil:
			return nil // an unreadable folder hides its own files only
		case entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && path != root:
			return filepath.SkipDir
		case !entry.Type().IsRegular():
			return nil
		}
		f, err := os.Open(path)
		if err != nil {
			return nil
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		for n := 1; lines.Scan(); n++ {
			line := lines.Text()
			if strings.IndexByte(line, 0) >= 0 {
				return nil // no text
			}
			if pattern.MatchString(line) {
				if len(line) > maxLine {
					line = line[:maxLine] + "…"
				}
				fmt.Fprintf(&found, "%s:%d:%s\n", path, n, strings.ToValidUTF8(line, "\uFFFD"))
				if matches++; matches == maxMatches {
					return filepath.SkipAll
				}
			}
		}
		return nil
	})
	return found.String(), err
}
