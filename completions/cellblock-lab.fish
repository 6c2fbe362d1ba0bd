# SPDX-License-Identifier: MIT
# fish completion for cellblock-lab(8)

set -l commands setup check add remove undo

function __cellblock_lab_students
	getent group cellblock 2>/dev/null | string replace -r '.*:' '' | string split ','
end

complete -c cellblock-lab -f
complete -c cellblock-lab -l help -d 'Show the options'
complete -c cellblock-lab -n "not __fish_seen_subcommand_from $commands" -l dry-run -d 'Print what would be done, and do nothing'
complete -c cellblock-lab -n "not __fish_seen_subcommand_from $commands" -a setup -d 'Make this host a laboratory, and check it'
complete -c cellblock-lab -n "not __fish_seen_subcommand_from $commands" -a check -d 'Check it as a student, over ssh'
complete -c cellblock-lab -n "not __fish_seen_subcommand_from $commands" -a add -d 'Add students, or keys of theirs'
complete -c cellblock-lab -n "not __fish_seen_subcommand_from $commands" -a remove -d 'Remove students with their homes'
complete -c cellblock-lab -n "not __fish_seen_subcommand_from $commands" -a undo -d 'Remove all that was made here'
complete -c cellblock-lab -n '__fish_seen_subcommand_from setup' -l course -x -d 'Name of the course'
complete -c cellblock-lab -n '__fish_seen_subcommand_from setup' -l students -x -d 'How many share this host'
complete -c cellblock-lab -n '__fish_seen_subcommand_from setup' -l files -x -a '(__fish_complete_directories)' -d 'Course files, which sessions read'
complete -c cellblock-lab -n '__fish_seen_subcommand_from setup' -l packages -x -a '(__fish_complete_directories)' -d 'Packages for Python'
complete -c cellblock-lab -n '__fish_seen_subcommand_from setup check' -l port -x -d 'Port of sshd'
complete -c cellblock-lab -n '__fish_seen_subcommand_from setup check' -l host -x -a '(__fish_print_hostnames)' -d 'Host of sshd'
complete -c cellblock-lab -n '__fish_seen_subcommand_from add' -F -d 'Lines of NAME,KEY'
complete -c cellblock-lab -n '__fish_seen_subcommand_from remove' -a '(__cellblock_lab_students)' -d Student
