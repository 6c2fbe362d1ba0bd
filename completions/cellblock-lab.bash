# SPDX-License-Identifier: MIT
# bash completion for cellblock-lab(8)

_cellblock_lab()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local command= word options

	COMPREPLY=()
	for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
		[[ $word == -* ]] || { command=$word && break; }
	done
	case $prev in
	--files | --packages)
		compopt -o filenames 2>/dev/null
		COMPREPLY=($(compgen -d -- "$cur"))
		return
		;;
	--host)
		COMPREPLY=($(compgen -A hostname -- "$cur"))
		return
		;;
	--course | --students | --port) return ;;
	esac
	case $command in
	'')
		COMPREPLY=($(compgen -W 'setup check add remove undo
			--dry-run --help' -- "$cur"))
		return
		;;
	setup)
		options='--course --students --files --packages --port --host'
		;;
	check) options='--port --host' ;;
	add)
		if [[ $cur != -* ]]; then
			compopt -o filenames 2>/dev/null
			COMPREPLY=($(compgen -f -- "$cur"))
			return
		fi
		;;
	remove)
		options=$(getent group cellblock 2>/dev/null |
			cut -d: -f4 | tr , ' ')
		;;
	esac
	COMPREPLY=($(compgen -W "$options --help" -- "$cur"))
}

complete -F _cellblock_lab cellblock-lab
