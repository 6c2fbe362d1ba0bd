#compdef cellblock-lab
# SPDX-License-Identifier: MIT
# zsh completion for cellblock-lab(8)

local -a commands sshd students
local state line

commands=(
	'setup:make this host a laboratory, and check it'
	'check:check it as a student, over ssh'
	'add:add students, or keys of theirs'
	'remove:remove students with their homes'
	'undo:remove all that was made here'
)
sshd=(
	'--port[port of sshd]:port:'
	'--host[host of sshd]:host:_hosts'
)

_arguments -C \
	'--dry-run[print what would be done, and do nothing]' \
	'(- *)--help[show the options]' \
	'1: :->command' \
	'*:: :->rest' && return

case $state in
command)
	_describe -t commands command commands
	;;
rest)
	case $line[1] in
	setup)
		_arguments \
			'--course[name of the course]:name:' \
			'--students[how many share this host]:number:' \
			'--files[course files, which sessions read]:directory:_files -/' \
			'--packages[packages for Python]:directory:_files -/' \
			$sshd '--help[show the options]'
		;;
	check)
		_arguments $sshd '--help[show the options]'
		;;
	add)
		_arguments '--help[show the options]' '1:lines of NAME,KEY:_files'
		;;
	remove)
		students=(${(s:,:)"$(getent group cellblock 2>/dev/null | cut -d: -f4)"})
		_arguments '--help[show the options]' "*:student:($students)"
		;;
	undo)
		_arguments '--help[show the options]'
		;;
	esac
	;;
esac
